// Command keeper is the small helper of a local cluster: it outlives the
// process that owns the cluster and leaves nothing of the cluster behind.
//
//	keeper watch DIR            wait on standard input; on its end, clean DIR; on "release", just leave
//	keeper clean DIR            end and remove everything that belongs to the cluster in DIR
//	keeper forward ADDRESS      pass connections of the listener on standard input on to ADDRESS
//	keeper hold                 do nothing: whatever namespaces we run in stay
//	keeper node READY KEEP...   hold the namespaces in which a node's processes live
//	keeper run RESOLV PROGRAM   become PROGRAM, with RESOLV in the place of /etc/resolv.conf
//
// It is a program of its own, not a part of the big binary, because it must
// start in a millisecond and weigh nothing. crates/local builds and runs it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	// Whoever reads our messages may be gone; the work is done all the same.
	signal.Ignore(syscall.SIGPIPE)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && arguments[0] == "hold" {
		for {
			time.Sleep(time.Hour)
		}
	}
	if len(arguments) >= 2 {
		switch verb, rest := arguments[0], arguments[1:]; verb {
		case "watch":
			return watch(rest[0])
		case "clean":
			return clean(rest[0])
		case "forward":
			return forward(rest[0])
		case "node":
			return node(rest[0], rest[1:])
		case "run":
			if len(rest) >= 2 {
				return runInside(rest[0], rest[1:])
			}
		case nodeInit:
			return initNode(rest)
		}
	}
	return fmt.Errorf("usage: keeper watch|clean DIR, keeper forward ADDRESS, keeper hold, keeper node READY KEEP..., keeper run RESOLV PROGRAM...")
}
