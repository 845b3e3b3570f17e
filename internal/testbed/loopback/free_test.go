package loopback

import (
	"net"
	"net/netip"
	"testing"
)

func TestFreePortsCanBeListenedOnAndDiffer(t *testing.T) {
	address := netip.MustParseAddr("127.20.30.40")
	seen := map[netip.AddrPort]bool{}
	for range 200 {
		free, err := Free(address)
		if err != nil {
			t.Fatal(err)
		}
		if free.Addr() != address || seen[free] {
			t.Fatalf("got %s, after %d others", free, len(seen))
		}
		seen[free] = true
		l, err := net.Listen("tcp", free.String())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFreeRefusesWhatIsNotLoopback(t *testing.T) {
	if free, err := Free(netip.MustParseAddr("192.0.2.1")); err == nil {
		t.Errorf("got %s; want an error", free)
	}
}
