package netns_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/netns"
)

func TestMain(m *testing.M) {
	code, done, err := netns.Enter(netip.MustParsePrefix("10.0.0.1/8"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code, done = 1, true
	}
	if !done {
		code = m.Run()
	}
	os.Exit(code)
}

// Any address of the prefix can be listened on and dialled, loopback as well, and there is no way out.
func TestAddressesAreLocal(t *testing.T) {
	for _, address := range []string{"10.1.2.3:0", "10.200.0.9:0", "127.0.0.1:0", "127.9.9.9:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Name != "lo" && i.Flags&net.FlagUp != 0 {
			t.Errorf("there is %s", i.Name)
		}
	}
}
