package verify

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// unpack reads a packed message into m where it is of m's type.
func unpack(url string, value []byte, m proto.Message) bool {
	return typeOf(url) == string(m.ProtoReflect().Descriptor().FullName()) && proto.Unmarshal(value, m) == nil
}

func unpackAny(a *anypb.Any, m proto.Message) bool { return unpack(a.GetTypeUrl(), a.GetValue(), m) }

// typeOf is the full name of a type URL's message.
func typeOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }
