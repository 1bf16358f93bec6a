package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// nodeInit is the verb with which keeper calls itself inside the new namespaces.
const nodeInit = "node-init"

// Directories in which a kubelet, containerd and the CNI plugins use fixed
// paths (device plugins, shims, results, log links): a node sees its own.
var private = []string{"/var/lib", "/var/log", "/run"}

// node makes mount and process namespaces, creates the file readyFile once they
// are usable, and holds them. With their first process, our only child, die all
// the others, shims and containers too, and with the last of them every mount
// goes: a node cannot leave anything behind, however it ends.
func node(readyFile string, keep []string) error {
	// The parent-death signal below is tied to the thread that starts the child.
	runtime.LockOSThread()
	ready, childReady, err := os.Pipe()
	if err != nil {
		return err
	}
	stage := filepath.Join(filepath.Dir(readyFile), "stage")
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return err
	}
	child := exec.Command("/proc/self/exe", append([]string{nodeInit, stage}, keep...)...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{childReady}
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("new mount and process namespaces: %w", err)
	}
	_ = childReady.Close()
	if said, _ := io.ReadAll(ready); string(said) != "ready" {
		return fmt.Errorf("the node's first process ended: %w", child.Wait())
	}
	if err := os.WriteFile(readyFile, nil, 0o600); err != nil {
		return err
	}
	return child.Wait()
}

func initNode(arguments []string) error {
	stage, keep := arguments[0], arguments[1:]
	// Unmounts of the host reach us (else we would keep its namespaces alive), ours never reach the host.
	if err := syscall.Mount("", "/", "", syscall.MS_SLAVE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	for _, path := range private {
		if err := cover(path, stage, keep); err != nil {
			return fmt.Errorf("cover %s: %w", path, err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// Volumes that ask for propagation need a shared mount, as on any node.
	if err := syscall.Mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	children := make(chan os.Signal, 16)
	signal.Notify(children, syscall.SIGCHLD)
	ready := os.NewFile(3, "ready")
	if _, err := ready.WriteString("ready"); err != nil {
		return err
	}
	_ = ready.Close()
	for range children {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

// cover puts an empty file system over path, in which only the directories of
// keep that lie below path are still to be seen.
func cover(path, stage string, keep []string) error {
	if err := syscall.Mount("tmpfs", stage, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, kept := range keep {
		below, found := strings.CutPrefix(kept, path+"/")
		if !found {
			continue
		}
		point := filepath.Join(stage, below)
		if err := os.MkdirAll(point, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(kept, point, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return err
		}
	}
	if err := syscall.Mount(stage, path, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	return syscall.Unmount(stage, syscall.MNT_DETACH)
}
