package loopback

import (
	"fmt"
	"net"
	"net/netip"
)

// Free finds a TCP port that nothing listens on at an address. Another process may take it before the caller does; the
// kernel hands out ports in a wide range, so that is rare.
func Free(address netip.Addr) (netip.AddrPort, error) {
	if !address.IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf("find a port: %s is not a loopback address", address)
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a port: %w", err)
	}
	free := l.Addr().(*net.TCPAddr).AddrPort()
	if err := l.Close(); err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a port: %w", err)
	}
	return free, nil
}
