package serve

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/xds"
)

// incoming is a request and the node that came with it, if any. It is read from the wire by hand: an acknowledgement under the
// state of the world repeats a thousand names that are known already, and those are told by their hash, without making
// strings of them.
type incoming struct {
	node    *core.Node
	request request
}

// fields are the numbers of a request's fields in envoy/service/discovery/v3/discovery.proto; 0 is a field that the protocol's
// request does not have.
type fields struct {
	version, node, names, typ, nonce, problem, subscribe, unsubscribe, held protowire.Number
}

var (
	stateFields = fields{version: 1, node: 2, names: 3, typ: 4, nonce: 5, problem: 6}
	deltaFields = fields{node: 1, typ: 2, subscribe: 3, unsubscribe: 4, held: 5, nonce: 6, problem: 7}
)

var errMalformed = errors.New("malformed request")

// parse reads a DiscoveryRequest or DeltaDiscoveryRequest. It keeps nothing of data.
func (f fields) parse(data []byte, table *nameTable) (incoming, error) {
	var in incoming
	all := data
	names, subscribe, unsubscribe := nameList{table: table}, nameList{table: table}, nameList{table: table}
	for len(data) > 0 {
		number, wireType, n := protowire.ConsumeTag(data)
		if n < 0 {
			return in, errMalformed
		}
		data = data[n:]
		if wireType != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, wireType, data); n < 0 {
				return in, errMalformed
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return in, errMalformed
		}
		data = data[n:]
		var err error
		switch number {
		case f.names:
			names.add(value)
		case f.subscribe:
			subscribe.add(value)
		case f.unsubscribe:
			unsubscribe.add(value)
		default:
			err = f.field(&in, number, value)
		}
		if err != nil {
			return in, err
		}
	}
	var errs [3]error
	in.request.names, errs[0] = names.intern(all, f.names)
	in.request.subscribe, errs[1] = subscribe.intern(all, f.subscribe)
	in.request.unsubscribe, errs[2] = unsubscribe.intern(all, f.unsubscribe)
	return in, errors.Join(errs[:]...)
}

// field reads one that is not a name.
func (f fields) field(in *incoming, number protowire.Number, value []byte) (err error) {
	r := &in.request
	switch number {
	case f.version:
		r.version, err = text(value)
	case f.typ:
		r.typ, err = typeOf(value)
	case f.nonce:
		r.nonce, err = text(value)
	case f.node:
		in.node = &core.Node{}
		err = proto.Unmarshal(value, in.node)
	case f.problem:
		var problem rpc.Status
		err = proto.Unmarshal(value, &problem)
		r.refusal = refusalOf(problem.GetMessage())
	case f.held:
		if _, _, err = mapEntry(value); err == nil {
			r.held = protowire.AppendBytes(r.held, value)
		}
	}
	return err
}

// typeOf is a type without making a string of one that is known.
func typeOf(value []byte) (xds.Type, error) {
	for _, t := range served {
		if string(value) == string(t) {
			return t, nil
		}
	}
	s, err := text(value)
	return xds.Type(s), err
}

var served = xds.Types()

func text(value []byte) (string, error) {
	if !utf8.Valid(value) {
		return "", fmt.Errorf("%w: a string that is not UTF-8", errMalformed)
	}
	return string(value), nil
}

// mapEntry reads the key and value of a map from strings to strings.
func mapEntry(entry []byte) (key, value []byte, err error) {
	for len(entry) > 0 {
		number, wireType, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return nil, nil, errMalformed
		}
		entry = entry[n:]
		if n = protowire.ConsumeFieldValue(number, wireType, entry); n < 0 {
			return nil, nil, errMalformed
		}
		if wireType == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(entry)
			switch number {
			case 1:
				key = content
			case 2:
				value = content
			}
		}
		entry = entry[n:]
	}
	if !utf8.Valid(key) || !utf8.Valid(value) {
		return nil, nil, fmt.Errorf("%w: a string that is not UTF-8", errMalformed)
	}
	return key, value, nil
}

// nameList counts names as they come on the wire, and sums their hashes.
type nameList struct {
	table *nameTable
	len   int
	key   nameKey
}

func (l *nameList) add(name []byte) {
	l.len++
	l.key = l.key.plus(l.table.keyOf(name))
}

// intern is the set of the names; where it is not in use already, they are read again from the fields of the request.
func (l *nameList) intern(data []byte, field protowire.Number) (*names, error) {
	if l.len == 0 {
		return nil, nil
	}
	if known := l.table.find(l.key); known != nil && known.len() == l.len {
		return known, nil
	}
	list := make([]string, 0, l.len)
	for len(data) > 0 {
		number, wireType, n := protowire.ConsumeTag(data)
		data = data[n:]
		m := protowire.ConsumeFieldValue(number, wireType, data)
		if number == field && wireType == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			name, err := text(value)
			if err != nil {
				return nil, err
			}
			list = append(list, name)
		}
		data = data[m:] // the first reading has found no fault
	}
	return l.table.of(list...), nil
}

// refusalOf bounds what a client says was wrong.
func refusalOf(message string) string {
	const most = 2000
	switch {
	case message == "":
		return "no reason given"
	case len(message) > most:
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}
