package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside marks the environment of a program that runs in its namespace.
const inside = "MERIDIAN_NETNS"

// Enter makes sure that the program runs in a namespace in which the addresses of prefix, an IPv4 one, are local. In the first
// process it starts the program anew in one, waits for that to end, and says that it is done, with the exit code to end with. In
// that second process it sets the namespace up and returns done == false, for the program to go on.
func Enter(prefix netip.Prefix) (code int, done bool, err error) {
	if os.Getenv(inside) == "" {
		code, err = again()
		return code, true, err
	}
	if err := setUp(prefix); err != nil {
		return 1, true, fmt.Errorf("set up the network namespace: %w", err)
	}
	return 0, false, nil
}

// Inside says whether the program runs in a namespace of its own, out of which nothing leads.
func Inside() bool { return os.Getenv(inside) != "" }

// again runs this program with the same arguments in a new namespace.
func again() (code int, err error) {
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 { // then it takes a user namespace too
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("run in a network namespace of its own: %w", err)
	}
	return 0, nil
}

// setUp brings loopback up, and gives it a second address with a prefix: of a loopback interface all addresses of a prefix are
// local.
func setUp(prefix netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_LOOPBACK)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	alias, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what    string
		request uint
		address netip.Addr
	}{{"add " + prefix.String(), unix.SIOCSIFADDR, prefix.Addr()}, {"set the mask of " + prefix.String(), unix.SIOCSIFNETMASK, mask(prefix)}} {
		if err := alias.SetInet4Addr(step.address.AsSlice()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.request, alias); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func mask(p netip.Prefix) netip.Addr {
	m, _ := netip.AddrFromSlice(net.CIDRMask(p.Bits(), 32)) // 4 bytes are an address
	return m
}
