package main

import (
	"encoding/binary"
	"encoding/json"
	"testing"
)

func ask(name []byte, kind byte) []byte {
	question := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	return append(append(question, name...), 0, kind, 0, 1)
}

func cluster() *world {
	w := newWorld()
	w.replaceServices([]json.RawMessage{
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"db"},"spec":{"clusterIP":"10.96.1.2","ports":[{"name":"a","protocol":"TCP","port":80}]}}`),
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"many"},"spec":{"clusterIP":"None"}}`),
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"empty"},"spec":{"clusterIP":"10.96.1.3","ports":[{"name":"a","protocol":"TCP","port":80}]}}`),
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"alias"},"spec":{"type":"ExternalName","externalName":"x.example"}}`),
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"other"},"spec":{"type":"ExternalName","externalName":"db.shop.svc.cluster.local."}}`),
		json.RawMessage(`{"metadata":{"namespace":"shop","name":"loop"},"spec":{"type":"ExternalName","externalName":"loop.shop.svc.cluster.local"}}`),
	})
	endpoints := ""
	for i := range 60 {
		if i > 0 {
			endpoints += ","
		}
		endpoints += `{"addresses":["10.244.0.` + string(rune('1'+i%9)) + `"]}`
	}
	slice := func(service, endpoints string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"namespace":"shop","name":"` + service + `-1","labels":{"kubernetes.io/service-name":"` + service +
			`"}},"endpoints":[` + endpoints + `],"ports":[{"name":"a","protocol":"TCP","port":8080}]}`)
	}
	w.replaceSlices([]json.RawMessage{
		slice("db", `{"addresses":["10.244.0.7"]},{"addresses":["10.244.0.8"],"conditions":{"ready":false}}`),
		slice("many", endpoints),
		slice("empty", `{"addresses":["10.244.0.9"],"conditions":{"ready":false}}`),
	})
	return w
}

func TestPortsHaveTheEndpointsThatAreReady(t *testing.T) {
	ports := cluster().ports()
	if len(ports) != 1 || len(ports["10.96.1.2:80"]) != 1 || ports["10.96.1.2:80"][0] != "10.244.0.7:8080" {
		t.Fatalf("%v", ports)
	}
}

func TestNamesAreAnswered(t *testing.T) {
	for _, test := range []struct {
		name  string
		kind  byte
		code  byte
		count uint16
	}{
		{"db.shop.svc.cluster.local", typeA, fine, 1},
		{"DB.shop.svc.Cluster.local", typeA, fine, 1},
		{"db.shop.svc.cluster.local", 28, fine, 0},
		{"other.shop.svc.cluster.local", typeA, fine, 2},
		{"alias.shop.svc.cluster.local", typeA, noSuchName, 1},
		{"loop.shop.svc.cluster.local", typeA, noSuchName, 7}, // As many as fit.
		{"nowhere.shop.svc.cluster.local", typeA, noSuchName, 0},
		{"x.db.shop.svc.cluster.local", typeA, noSuchName, 0},
		{"db.svc.cluster.local", typeA, noSuchName, 0},
		{"example.com", typeA, noSuchName, 0},
	} {
		reply := answer(cluster(), ask(writeName(test.name), test.kind), largest)
		if code, count := reply[3]&0x0f, binary.BigEndian.Uint16(reply[6:]); code != test.code || count != test.count {
			t.Errorf("%s: code %d, %d records", test.name, code, count)
		}
	}
}

func TestWhatDoesNotFitIsCutAndSaidSo(t *testing.T) {
	question := ask(writeName("many.shop.svc.cluster.local"), typeA)
	reply := answer(cluster(), question, largest)
	if len(reply) > largest || reply[2]&0x02 == 0 {
		t.Fatalf("%d bytes, flags %x", len(reply), reply[2])
	}
	if whole := answer(cluster(), question, 0xffff); binary.BigEndian.Uint16(whole[6:]) != 60 || whole[2]&0x02 != 0 {
		t.Fatalf("%d records over TCP", binary.BigEndian.Uint16(whole[6:]))
	}
}

func TestNoQuestionIsMoreThanAnError(t *testing.T) {
	whole := ask(writeName("db.shop.svc.cluster.local"), typeA)
	for length := range whole {
		_ = answer(cluster(), whole[:length], largest)
	}
	_ = answer(cluster(), ask([]byte{0xc0, 0x0c}, typeA), largest)
	_ = answer(cluster(), ask([]byte{63}, typeA), largest)
	if answer(newWorld(), whole, largest)[3]&0x0f != failed {
		t.Fatal("what is not known yet is not an absence")
	}
}
