package dataserver

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// EchoService is the name of the service that a GRPC Server has.
const EchoService = "meridian.testbed.Echo"

// EchoMethod takes a google.protobuf.StringValue and answers with one: the name on a line, and the value.
const EchoMethod = "/" + EchoService + "/Echo"

// echoDesc is what protoc would generate for the service.
var echoDesc = grpc.ServiceDesc{
	ServiceName: EchoService,
	HandlerType: (*echoer)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			return srv.(echoer).echo(ctx, in)
		},
	}},
}

// echoer is the service's interface.
type echoer interface {
	echo(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error)
}

// grpcServer speaks GRPC for a Server.
type grpcServer struct {
	// Set once.
	*Server
	rpc    *grpc.Server
	health *health.Server
}

func newGRPC(s *Server) *grpcServer {
	g := &grpcServer{Server: s, health: health.NewServer()}
	g.rpc = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.WaitForHandlers(true))
	healthpb.RegisterHealthServer(g.rpc, g.health)
	g.rpc.RegisterService(&echoDesc, g)
	g.setHealthy(true)
	return g
}

func (g *grpcServer) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = g.port.Close() })
	defer stop()
	err := g.rpc.Serve(g.port)
	g.rpc.Stop()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// setHealthy tells of the server as a whole, and of the service.
func (g *grpcServer) setHealthy(healthy bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if healthy {
		status = healthpb.HealthCheckResponse_SERVING
	}
	g.health.SetServingStatus("", status)
	g.health.SetServingStatus(EchoService, status)
}

func (g *grpcServer) echo(ctx context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	g.received.Add(int64(len(in.GetValue())))
	if err := grpc.SetHeader(ctx, metadata.Pairs("x-served-by", g.config.Name)); err != nil {
		return nil, err
	}
	g.served.Add(1)
	return wrapperspb.String(g.config.Name + "\n" + in.GetValue()), nil
}
