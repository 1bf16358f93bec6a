package main

// The data that cases are rendered with, by name.
var datasets = map[string]string{
	"kinds": `{
		"i": 42, "neg": -7, "zero": 0, "one": 1, "big": 9007199254740993, "f": 3.14, "f1": 1.5, "million": 1e6,
		"tiny": 0.000012, "huge": 1e21, "whole": 2.0, "negf": -2.5, "s": "héllo", "empty": "", "quoted": "a \"b\" \\ c\n\td",
		"html": "<a href='x'>&\"</a>", "t": true, "no": false, "null": null, "list": [1, "a", true, null, 2.5], "none": [],
		"words": ["pear", "apple", "fig", "apple"], "numbers": [3, 1, 2, 3], "nested": [[1, 2], [3]], "map": {"b": 2, "a": 1, "c": "x"},
		"nomap": {}, "deep": {"a": {"b": {"c": "leaf", "n": null}}, "list": [{"k": "v0"}, {"k": "v1"}]},
		"text": "one two  three", "lines": "l1\nl2\n\nl4", "csv": "a,b,c", "digits": "123", "octal": "0644", "spaces": "  x \t\n",
		"unicode": "日本語 ñ ß İ", "control": "\u0001\u007f\u00a0\u200b", "name": "my-app", "yes": "yes", "date": "2026-03-04"
	}`,
	"plan": `{
		"Values": {"replicas": 3, "image": "nginx:1.27", "labels": {"app": "web", "tier": "front"}, "ports": [80, 443], "password": "s3cr3t"},
		"Dependencies": {
			"controlplane_its1": {"Name": "its1", "Namespace": "", "Kind": "ControlPlane", "State": "Ready", "Status": {"Endpoint": "https://its1:6443", "secretRef": {"name": "adm"}}},
			"namespace_kubestellar_system": {"Name": "kubestellar-system", "Kind": "Namespace", "State": "Ready", "Status": {"phase": "Active"}},
			"db": {"Name": "db", "Kind": "Deployment", "State": "NotReady", "Status": {"readyReplicas": 2, "conditions": [
				{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}]}}
		},
		"Now": "2026-03-04T15:06:07Z"
	}`,
}
