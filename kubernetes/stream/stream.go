// Package stream joins TCP connections: what comes in on one goes out on the other.
package stream

import (
	"io"
	"net"
)

// Join carries bytes between two connections until both sides have ended, and closes both.
func Join(client, server *net.TCPConn) {
	done := make(chan struct{})
	go func() {
		copyHalf(server, client)
		close(done)
	}()
	copyHalf(client, server)
	<-done
	_ = client.Close()
	_ = server.Close()
}

// Reset ends a connection so that the other side cannot take it for an orderly end.
func Reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}

// copyHalf carries an end of stream over as an end of stream and a reset as a reset.
func copyHalf(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		Reset(to)
		_ = from.Close()
		return
	}
	_ = to.CloseWrite()
}
