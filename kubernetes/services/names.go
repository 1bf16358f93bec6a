package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// nameServer is where pods ask for names: the kubelet tells them so.
const (
	nameServer = "10.96.0.10:53"
	domain     = "cluster.local"
)

const (
	header   = 12
	typeA    = 1
	typeName = 5
	largest  = 512
	aliases  = 8

	fine       = 0
	malformed  = 1
	failed     = 2
	noSuchName = 3
)

// serveNames answers over UDP, and over TCP where answers do not fit.
func serveNames(w *world) error {
	packets, err := net.ListenPacket("udp", nameServer)
	if err != nil {
		return err
	}
	streams, err := net.Listen("tcp", nameServer)
	if err != nil {
		return err
	}
	go func() {
		buffer := make([]byte, largest)
		for {
			count, from, err := packets.ReadFrom(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if reply := answer(w, buffer[:count], largest); err == nil && reply != nil {
				_, _ = packets.WriteTo(reply, from)
			}
		}
	}()
	go func() {
		for {
			stream, err := streams.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go serveStream(w, stream)
			}
		}
	}()
	return nil
}

func serveStream(w *world, stream net.Conn) {
	defer stream.Close()
	_ = stream.SetDeadline(time.Now().Add(5 * time.Second))
	var length uint16
	if binary.Read(stream, binary.BigEndian, &length) != nil {
		return
	}
	question := make([]byte, length)
	if _, err := io.ReadFull(stream, question); err != nil {
		return
	}
	if reply := answer(w, question, 0xffff); reply != nil {
		_, _ = stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	}
}

// answer makes the reply to a question; none to what is not one.
func answer(w *world, question []byte, limit int) []byte {
	if len(question) < header || question[2]&0x80 != 0 {
		return nil
	}
	labels, end, ok := readName(question)
	if !ok || end+4 > len(question) || binary.BigEndian.Uint16(question[4:]) != 1 {
		return reply(question[:header], nil, malformed, nil, 0, limit)
	}
	kind := binary.BigEndian.Uint16(question[end:])
	asked := question[header : end+4]
	if !w.known() {
		return reply(question, asked, failed, nil, 0, limit)
	}
	name := strings.ToLower(strings.Join(labels, "."))
	// The name in the question, as records refer to it.
	owner := []byte{0xc0, header}
	var records [][]byte
	// Whoever asks does not follow other words for a name himself.
	for range aliases {
		below, inside := strings.CutSuffix(name, ".svc."+domain)
		if !inside {
			break
		}
		addresses, alias, exists := w.resolve(strings.Split(below, "."))
		if !exists {
			break
		}
		if alias == "" {
			for _, address := range addresses {
				if kind == typeA {
					records = append(records, record(owner, typeA, address))
				}
			}
			return reply(question, asked, fine, records, len(records), limit)
		}
		records = append(records, record(owner, typeName, writeName(alias)))
		owner, name = writeName(alias), strings.ToLower(alias)
	}
	return reply(question, asked, noSuchName, records, len(records), limit)
}

// reply has as many records as fit, and says so if that is not all.
func reply(question, asked []byte, code byte, records [][]byte, all, limit int) []byte {
	message := make([]byte, header, largest)
	copy(message, question[:2])
	// An answer, with authority, to whoever wants it found out for him.
	message[2], message[3] = 0x84|question[2]&0x01, 0x80|code
	if asked != nil {
		message[5] = 1
		message = append(message, asked...)
	}
	count := 0
	for _, one := range records {
		if len(message)+len(one) > limit {
			break
		}
		message = append(message, one...)
		count++
	}
	if count < all {
		message[2] |= 0x02
	}
	binary.BigEndian.PutUint16(message[6:], uint16(count))
	return message
}

// record is about the name owner. It counts for a second: tests are impatient.
func record(owner []byte, kind uint16, data []byte) []byte {
	one := append(append([]byte{}, owner...), 0, byte(kind), 0, 1, 0, 0, 0, 1)
	one = binary.BigEndian.AppendUint16(one, uint16(len(data)))
	return append(one, data...)
}

func readName(question []byte) (labels []string, end int, ok bool) {
	for at := header; at < len(question); {
		length := int(question[at])
		at++
		if length == 0 {
			return labels, at, true
		}
		if length > 63 || at+length > len(question) {
			return nil, 0, false
		}
		labels = append(labels, string(question[at:at+length]))
		at += length
	}
	return nil, 0, false
}

func writeName(name string) []byte {
	var bytes []byte
	for _, label := range strings.Split(name, ".") {
		if len(label) == 0 || len(label) > 63 {
			continue
		}
		bytes = append(append(bytes, byte(len(label))), label...)
	}
	return append(bytes, 0)
}
