package main

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// apiServer has its address to itself: nothing is passed on there.
const apiServer = "10.96.0.1"

type service struct {
	meta
	Spec struct {
		Type                     string `json:"type"`
		ClusterIP                string `json:"clusterIP"`
		ExternalName             string `json:"externalName"`
		PublishNotReadyAddresses bool   `json:"publishNotReadyAddresses"`
		Ports                    []struct {
			Name     string `json:"name"`
			Protocol string `json:"protocol"`
			Port     int    `json:"port"`
		} `json:"ports"`
	} `json:"spec"`
}

type slice struct {
	meta
	AddressType string `json:"addressType"`
	Endpoints   []struct {
		Addresses  []string `json:"addresses"`
		Hostname   string   `json:"hostname"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
	Ports []struct {
		Name     string `json:"name"`
		Protocol string `json:"protocol"`
		Port     int    `json:"port"`
	} `json:"ports"`
}

// world is what is known of the cluster.
type world struct {
	lock            sync.RWMutex
	services        map[string]service
	slices          map[string]slice
	hasServices     bool
	hasEndpointList bool
}

func newWorld() *world {
	return &world{services: map[string]service{}, slices: map[string]slice{}}
}

func (w *world) known() bool {
	w.lock.RLock()
	defer w.lock.RUnlock()
	return w.hasServices && w.hasEndpointList
}

func (w *world) setService(raw json.RawMessage, gone bool) { set(w, w.services, raw, gone) }

func (w *world) setSlice(raw json.RawMessage, gone bool) { set(w, w.slices, raw, gone) }

func (w *world) replaceServices(all []json.RawMessage) {
	w.clear(func() { clear(w.services); w.hasServices = true })
	for _, raw := range all {
		w.setService(raw, false)
	}
}

func (w *world) replaceSlices(all []json.RawMessage) {
	w.clear(func() { clear(w.slices); w.hasEndpointList = true })
	for _, raw := range all {
		w.setSlice(raw, false)
	}
}

func (w *world) clear(what func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	what()
}

func set[T interface{ key() string }](w *world, into map[string]T, raw json.RawMessage, gone bool) {
	var object T
	if json.Unmarshal(raw, &object) != nil {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if gone {
		delete(into, object.key())
	} else {
		into[object.key()] = object
	}
}

func (m meta) key() string { return m.Metadata.Namespace + "/" + m.Metadata.Name }

// of returns the slices of a Service.
func (w *world) of(s service) []slice {
	var found []slice
	for _, one := range w.slices {
		if one.Metadata.Namespace == s.Metadata.Namespace && one.Metadata.Labels["kubernetes.io/service-name"] == s.Metadata.Name {
			found = append(found, one)
		}
	}
	return found
}

// ports returns for every address and port of a Service the endpoints behind it.
func (w *world) ports() map[string][]string {
	w.lock.RLock()
	defer w.lock.RUnlock()
	ports := map[string][]string{}
	for _, s := range w.services {
		if net.ParseIP(s.Spec.ClusterIP) == nil || s.Spec.ClusterIP == apiServer {
			continue
		}
		of := w.of(s)
		for _, port := range s.Spec.Ports {
			if port.Protocol != "TCP" {
				continue
			}
			var behind []string
			for _, one := range of {
				for _, target := range one.Ports {
					if target.Name == port.Name && target.Protocol == "TCP" {
						for _, address := range ready(s, one) {
							behind = append(behind, net.JoinHostPort(address, strconv.Itoa(target.Port)))
						}
					}
				}
			}
			if len(behind) > 0 {
				slices.Sort(behind)
				ports[net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(port.Port))] = slices.Compact(behind)
			}
		}
	}
	return ports
}

// ready returns the addresses of the endpoints that may be used.
func ready(s service, one slice) []string {
	var found []string
	for _, endpoint := range one.Endpoints {
		is := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
		if is || s.Spec.PublishNotReadyAddresses {
			found = append(found, endpoint.Addresses...)
		}
	}
	return found
}

// resolve returns the IPv4 addresses of a name below svc.cluster.local, or the
// name that it is another word for, and whether it exists at all.
func (w *world) resolve(labels []string) (addresses []net.IP, alias string, exists bool) {
	w.lock.RLock()
	defer w.lock.RUnlock()
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	if len(labels) != 2 {
		return nil, "", false
	}
	s, found := w.services[labels[1]+"/"+labels[0]]
	switch {
	case !found:
		return nil, "", false
	case s.Spec.Type == "ExternalName":
		return nil, strings.TrimSuffix(s.Spec.ExternalName, "."), host == ""
	case s.Spec.ClusterIP != "None":
		return []net.IP{net.ParseIP(s.Spec.ClusterIP).To4()}, "", host == ""
	}
	var texts []string
	for _, one := range w.of(s) {
		if host == "" {
			texts = append(texts, ready(s, one)...)
			continue
		}
		for _, endpoint := range one.Endpoints {
			if endpoint.Hostname == host {
				texts = append(texts, endpoint.Addresses...)
			}
		}
	}
	for _, text := range texts {
		if address := net.ParseIP(text).To4(); address != nil {
			addresses = append(addresses, address)
		}
	}
	// A headless Service without endpoints has no address yet, and no name either, as elsewhere.
	return addresses, "", len(addresses) > 0
}
