package main

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// watch waits until the owner says "release" or its end of the pipe is closed,
// which the kernel does for an owner that was killed.
func watch(dir string) error {
	// A Ctrl-C meant for the owner must not take away the one who cleans up after it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	said, err := io.ReadAll(os.Stdin)
	if err == nil && strings.TrimSpace(string(said)) == "release" {
		return nil
	}
	return clean(dir)
}
