// Command workload is the one container image of tests and demonstrations on a
// real node. It stands for any application and for any command in one:
//
//	workload serve PORT [DELAY]   answer 200 on every path, /healthz included, once DELAY has passed
//	workload sleep DURATION       wait, then succeed
//	workload exit CODE [TEXT]     say TEXT and exit with CODE
//	workload write FILE TEXT      replace FILE by a line of TEXT
//	workload append FILE TEXT     add a line of TEXT to FILE
//	workload cat FILE             print FILE
//	workload get URL              print what URL answers; fail unless it is 200
//	workload print TEXT...        print one line
//	workload stay                 do nothing until told to end
//
// Whatever waits ends at once, with success, on SIGTERM.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	finished := make(chan error, 1)
	go func() { finished <- run(os.Args[1:]) }()
	select {
	case <-ended:
	case err := <-finished:
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("say what to do: serve, sleep, exit, write, append, cat, get, print, stay")
	}
	verb, rest := arguments[0], arguments[1:]
	argument := func(i int) string {
		if i < len(rest) {
			return rest[i]
		}
		return ""
	}
	switch verb {
	case "serve":
		return serve(argument(0), argument(1))
	case "sleep":
		duration, err := time.ParseDuration(argument(0))
		time.Sleep(duration)
		return err
	case "exit":
		code, err := strconv.Atoi(argument(0))
		if err != nil {
			return err
		}
		fmt.Println(argument(1))
		os.Exit(code)
		return nil
	case "write":
		return put(argument(0), os.O_TRUNC, argument(1))
	case "append":
		return put(argument(0), os.O_APPEND, argument(1))
	case "cat":
		content, err := os.ReadFile(argument(0))
		_, _ = os.Stdout.Write(content)
		return err
	case "get":
		return get(argument(0))
	case "print":
		fmt.Println(strings.Join(rest, " "))
		return nil
	case "stay":
		select {}
	}
	return fmt.Errorf("%q is not something I can do", verb)
}

func serve(port, delay string) error {
	if delay != "" {
		duration, err := time.ParseDuration(delay)
		if err != nil {
			return err
		}
		time.Sleep(duration)
	}
	fmt.Println("serving on port", port)
	return http.ListenAndServe(":"+port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	}))
}

// put writes one line in one system call: two writers never mix theirs.
func put(path string, mode int, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text + "\n")
	return errors.Join(err, file.Close())
}

func get(url string) error {
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, answer.Status)
	}
	return nil
}
