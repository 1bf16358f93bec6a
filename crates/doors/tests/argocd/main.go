// What Argo CD itself says about an object of ours: its own evaluation of a health script, in its own sandbox.
//
// Built inside a copy of Argo CD's module by `make argocd`, which lets the tests of `doors` compare with it. The script is
// the only argument, the object comes from standard input, the health goes to standard output.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return err
	}
	health, err := lua.VM{}.ExecuteHealthLua(object, string(script))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(health)
}
