package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// retry is the pause after anything that went wrong: an API server that is
// being restarted by a test is back within seconds.
const retry = 200 * time.Millisecond

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

type meta struct {
	Metadata struct {
		Namespace       string            `json:"namespace"`
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
}

type list struct {
	meta
	Items []json.RawMessage `json:"items"`
}

// follow lists and watches the objects at path for ever. replace gets all of
// them after a list, set one of them after a change; changed hears of both.
func follow(client *http.Client, path string, set func(json.RawMessage, bool), replace func([]json.RawMessage), changed chan<- struct{}) {
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for ; ; time.Sleep(retry) {
		var all list
		if err := get(client, path, func(decoder *json.Decoder) error { return decoder.Decode(&all) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		replace(all.Items)
		tell()
		version := all.Metadata.ResourceVersion
		for version != "" {
			watch := path + "?watch=1&allowWatchBookmarks=true&resourceVersion=" + url.QueryEscape(version)
			err := get(client, watch, func(decoder *json.Decoder) error {
				for {
					var one event
					if err := decoder.Decode(&one); err != nil {
						return nil // An orderly end, or one that the next request finds out about.
					}
					var object meta
					if err := json.Unmarshal(one.Object, &object); err != nil {
						return err
					}
					switch one.Type {
					case "ADDED", "MODIFIED", "DELETED":
						set(one.Object, one.Type == "DELETED")
						tell()
					case "BOOKMARK":
					default:
						version = "" // Too old: look at everything anew.
						return nil
					}
					version = object.Metadata.ResourceVersion
				}
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				version = ""
			}
		}
	}
}

func get(client *http.Client, path string, read func(*json.Decoder) error) error {
	answer, err := client.Get(path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return read(json.NewDecoder(answer.Body))
}
