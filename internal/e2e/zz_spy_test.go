package e2e

import (
	"reflect"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

type spy struct{ grpc.ServerStream }

func (s spy) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		var d discovery.DeltaDiscoveryRequest
		if e := proto.Unmarshal(reflect.ValueOf(m).Elem().Field(0).Bytes(), &d); e == nil {
			d.Node = nil
			println("<-", d.String())
		}
	}
	return err
}

func spying(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	return h(srv, spy{ss})
}
