package main

import (
	"fmt"
	"net"
	"os"

	"linchpin.dev/kubernetes/stream"
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
		// The client must not take this for an empty answer.
		stream.Reset(client)
		return
	}
	stream.Join(client, dialed.(*net.TCPConn))
}
