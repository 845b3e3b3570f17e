package loopback

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// given are the addresses handed out by this program. The kernel may offer a port again before anyone listens on it.
var given sync.Map // netip.AddrPort -> struct{}

// Free finds a TCP port that nothing listens on at a loopback address; a program never gets the same one twice. Another
// program may take it before the caller does: rare, since the kernel draws from a wide range, and not where each
// simulated cluster has an address of its own.
func Free(address netip.Addr) (netip.AddrPort, error) {
	if !address.IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf("find a free port: %s is not a loopback address", address)
	}
	for {
		offered, err := offer(address)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("find a free port: %w", err)
		}
		if _, before := given.LoadOrStore(offered, struct{}{}); !before {
			return offered, nil
		}
	}
}

// offer lets the kernel choose a port.
func offer(address netip.Addr) (netip.AddrPort, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return netip.AddrPort{}, err
	}
	return l.Addr().(*net.TCPAddr).AddrPort(), l.Close()
}
