package port

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// backlog is the length of the kernel's queue of connections to accept; it makes it shorter where its limit is lower.
const backlog = 4096

// reservation is a socket that is bound and never listens: a connection to it is refused, and its number is given to no
// other socket that asks for any free one.
type reservation struct {
	fd int
}

// reserve binds a socket such that a listener may be bound to the same address as well (SO_REUSEADDR, which net sets
// for each listener).
func reserve(address netip.AddrPort) (*reservation, netip.AddrPort, error) {
	family, to := sockaddr(address)
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, netip.AddrPort{}, os.NewSyscallError("socket", err)
	}
	r := &reservation{fd: fd}
	bound, err := r.bind(to)
	if err != nil {
		_ = r.release()
		return nil, netip.AddrPort{}, err
	}
	return r, netip.AddrPortFrom(address.Addr(), bound), nil
}

func sockaddr(address netip.AddrPort) (family int, to syscall.Sockaddr) {
	if address.Addr().Is4() {
		return syscall.AF_INET, &syscall.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}
	}
	return syscall.AF_INET6, &syscall.SockaddrInet6{Addr: address.Addr().As16(), Port: int(address.Port())}
}

// bind returns the number that it got.
func (r *reservation) bind(to syscall.Sockaddr) (uint16, error) {
	if err := syscall.SetsockoptInt(r.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(r.fd, to); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(r.fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	switch b := bound.(type) {
	case *syscall.SockaddrInet4:
		return uint16(b.Port), nil
	case *syscall.SockaddrInet6:
		return uint16(b.Port), nil
	default:
		return 0, fmt.Errorf("getsockname: unexpected %T", bound)
	}
}

func (r *reservation) release() error { return os.NewSyscallError("close", syscall.Close(r.fd)) }

// setBacklog changes the length of a listener's queue; listen(2) may be called again.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) }); err != nil {
		return err
	}
	return os.NewSyscallError("listen", failed)
}
