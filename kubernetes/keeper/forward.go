package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

// forward accepts connections on the listener that is our standard input and
// passes them on to address. A socket stays in the network namespace it was
// made in: a listener of the host, handed to a keeper that runs in a cluster's
// namespace, is a door between the two that needs no route and no address.
func forward(address string) error {
	listener, err := net.FileListener(os.Stdin)
	if err != nil {
		return fmt.Errorf("standard input is not a listening socket: %w", err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go pass(client.(*net.TCPConn), address)
	}
}

func pass(client *net.TCPConn, address string) {
	dialed, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		// A reset, not an orderly end: the client must not take this for an empty answer.
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	server := dialed.(*net.TCPConn)
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

// copyHalf carries an end of stream over as an end of stream and a reset as a reset.
func copyHalf(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.SetLinger(0)
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = to.CloseWrite()
}
