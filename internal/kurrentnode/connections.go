package kurrentnode

import (
	"net"
	"sync"
)

// counted counts a listener's connections.
type counted struct {
	net.Listener
	node *Node
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.node.connected(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { l.node.connected(-1) })}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
