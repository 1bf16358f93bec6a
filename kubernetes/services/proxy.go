package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"linchpin.dev/kubernetes/stream"
)

// patience is how long an endpoint may take to take a connection before the next is tried.
const patience = 2 * time.Second

// proxies holds one listener for each port of a Service that has an endpoint.
type proxies struct {
	open map[string]*proxy
}

type proxy struct {
	listener net.Listener
	lock     sync.RWMutex
	behind   []string
	turn     atomic.Uint32
}

func newProxies() *proxies { return &proxies{open: map[string]*proxy{}} }

// update opens, changes and closes listeners to match what is wanted. A port
// that cannot be opened now is tried again with the next change.
func (p *proxies) update(wanted map[string][]string) {
	for address, one := range p.open {
		if _, found := wanted[address]; !found {
			_ = one.listener.Close()
			delete(p.open, address)
		}
	}
	for address, behind := range wanted {
		if one, found := p.open[address]; found {
			one.set(behind)
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		one := &proxy{listener: listener}
		one.set(behind)
		p.open[address] = one
		go one.serve()
	}
}

func (p *proxy) set(behind []string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.behind = behind
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(client.(*net.TCPConn))
	}
}

// next returns the endpoints, each time beginning with another one.
func (p *proxy) next() []string {
	p.lock.RLock()
	defer p.lock.RUnlock()
	first := int(p.turn.Add(1)) % len(p.behind)
	return append(append([]string{}, p.behind[first:]...), p.behind[:first]...)
}

func (p *proxy) pass(client *net.TCPConn) {
	for _, address := range p.next() {
		dialed, err := net.DialTimeout("tcp", address, patience)
		if err == nil {
			stream.Join(client, dialed.(*net.TCPConn))
			return
		}
	}
	// Nobody is there.
	stream.Reset(client)
}
