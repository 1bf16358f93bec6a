package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runInside becomes program, which sees names as the file resolv says. It is
// called in the cluster's network namespace; the mount is seen by nobody else.
func runInside(resolv string, program []string) error {
	path, err := exec.LookPath(program[0])
	if err != nil {
		return err
	}
	// Namespaces belong to a thread, and the one that calls exec is the one that stays.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := syscall.Mount(resolv, "/etc/resolv.conf", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover /etc/resolv.conf: %w", err)
	}
	return syscall.Exec(path, program, os.Environ())
}
