// Command services makes the Services of a local cluster with a real node
// reachable by address and by name: what kube-proxy and CoreDNS do elsewhere,
// small enough to build in seconds and without rules in the kernel.
//
//	services READY SERVER CA CERTIFICATE KEY
//
// It watches Services and EndpointSlices of the API server SERVER, creates the
// file READY once it knows them, and from then on
//
//   - takes TCP connections to every port of every Service that has a ready
//     endpoint and passes them on to one of its endpoints. A port without one
//     refuses, as elsewhere. (The cluster's network counts the whole range of
//     Service addresses as its own: crates/local sets that up.)
//   - answers DNS on 10.96.0.10 for cluster.local. There is nobody else to ask:
//     every other name does not exist.
//
// What it does not do: UDP other than DNS, node ports, session affinity.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signal.Ignore(syscall.SIGPIPE)
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: services READY SERVER CA CERTIFICATE KEY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ready, server, authority, certificate, key string) error {
	client, err := newClient(authority, certificate, key)
	if err != nil {
		return err
	}
	world := newWorld()
	changed := make(chan struct{}, 1)
	go follow(client, server+"/api/v1/services", world.setService, world.replaceServices, changed)
	go follow(client, server+"/apis/discovery.k8s.io/v1/endpointslices", world.setSlice, world.replaceSlices, changed)
	if err := serveNames(world); err != nil {
		return err
	}
	proxies := newProxies()
	for range changed {
		if !world.known() {
			continue
		}
		proxies.update(world.ports())
		if ready != "" {
			if err := os.WriteFile(ready, nil, 0o600); err != nil {
				return err
			}
			ready = ""
		}
	}
	return nil
}

func newClient(authority, certificate, key string) (*http.Client, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: false,
		IdleConnTimeout:   time.Minute,
	}
	return &http.Client{Transport: transport}, nil
}
