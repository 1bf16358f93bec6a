package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Every process of a cluster, and so every process that one starts, carries its directory in this variable.
	marker = "LINCHPIN_LOCAL_DIR="
	// A directory without this file is not a cluster's and is never removed.
	stateFile = "cluster.json"
	patience  = 10 * time.Second
	pause     = 20 * time.Millisecond
)

// clean ends every process of the cluster in dir, and with them its namespaces
// and all that lives in those, and removes its control groups and directory.
// What is gone already is fine: it may be called at any time, after any crash,
// more than once.
func clean(dir string) error {
	killed, err := killAll(dir)
	return errors.Join(
		err,
		removeControlGroups("linchpin-"+identity(dir)),
		unmountBelow(dir),
		removeDirectory(dir),
		awaitEnd(killed),
	)
}

// identity must agree with crates/local: it names the control groups.
func identity(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:4])
}

// killAll kills until two looks in a row find nothing: a process caught
// between fork and exec shows its mark only at the second.
func killAll(dir string) (map[int]bool, error) {
	killed := map[int]bool{}
	deadline := time.Now().Add(patience)
	for quiet := 0; quiet < 2; time.Sleep(pause) {
		found := killMarked([]byte(marker + dir))
		if len(found) == 0 {
			quiet++
			continue
		}
		quiet = 0
		for _, pid := range found {
			killed[pid] = true
		}
		if time.Now().After(deadline) {
			return killed, fmt.Errorf("%d processes of the cluster in %s do not end", len(found), dir)
		}
	}
	return killed, nil
}

func killMarked(mark []byte) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The handle is taken before the look, so that it cannot come to mean another process.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && contains(environment, mark) {
			found = append(found, pid)
			_ = process.Kill()
		}
		_ = process.Release()
	}
	return found
}

// awaitEnd waits until every thread of the killed is dead, since the last of
// them holds the ports, and gives the first process of the machine a moment to
// collect those that fell to it. Those of a living parent are its own to collect.
func awaitEnd(killed map[int]bool) error {
	for deadline := time.Now().Add(patience / 2); len(killed) > 0 && time.Now().Before(deadline); time.Sleep(pause) {
		for pid := range killed {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			// After the name, which may contain anything: state, parent, …, number of threads.
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if err != nil || len(fields) < 18 || fields[0] == "Z" && fields[1] != "1" && fields[17] == "1" {
				delete(killed, pid)
			}
		}
	}
	return nil
}

func contains(environment, variable []byte) bool {
	for _, one := range bytes.Split(environment, []byte{0}) {
		if bytes.Equal(one, variable) {
			return true
		}
	}
	return false
}

// removeControlGroups removes the groups called name in every hierarchy, with
// all below them and whatever still runs in them: containers carry no mark.
func removeControlGroups(name string) error {
	var failures []error
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, root := range append(roots, "/sys/fs/cgroup/"+name) {
		deadline := time.Now().Add(patience)
		for {
			err := removeGroup(root)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				failures = append(failures, fmt.Errorf("control group %s: %w", root, err))
				break
			}
			time.Sleep(pause)
		}
	}
	return errors.Join(failures...)
}

func removeGroup(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroup(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	members, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for _, member := range strings.Fields(string(members)) {
		if pid, err := strconv.Atoi(member); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	err = syscall.Rmdir(group)
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// unmountBelow takes away what anyone else has mounted below dir, so that
// nothing is ever deleted through a mount; our own are in other namespaces.
func unmountBelow(dir string) error {
	var failures []error
	points, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for i := len(points) - 1; i >= 0; i-- {
		if err := syscall.Unmount(points[i], syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			failures = append(failures, fmt.Errorf("unmount %s: %w", points[i], err))
		}
	}
	return errors.Join(failures...)
}

func mountsBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for _, line := range strings.Split(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 {
			if point := unescape.Replace(fields[4]); strings.HasPrefix(point, dir+"/") {
				points = append(points, point)
			}
		}
	}
	return points, nil
}

func removeDirectory(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, stateFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if points, err := mountsBelow(dir); err != nil || len(points) > 0 {
		return fmt.Errorf("%s is not removed: still mounted below it: %v %w", dir, points, err)
	}
	// The state file goes last: as long as anything is left, the next call knows the directory as a cluster's.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != stateFile {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}
