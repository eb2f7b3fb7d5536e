// Package protocol is what the host and a guest say to each other: one Spec goes in with the
// initramfs, Messages come out as JSON lines on the second serial port.
package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/memagent/memagent/lab/result"
)

// SpecPath is where a guest finds its Spec, ResultPort where it writes its Messages.
const (
	SpecPath   = "/etc/memlab.json"
	ResultPort = "/dev/ttyS1"
)

// GuestEnv is set by the kernel command line. Only a first process that finds it in its
// environment is a guest's init; a container's first process is not.
const GuestEnv = "MEMLAB_GUEST"

// Agent states.
const (
	AgentOff = "off"
	AgentOn  = "on"
)

// Spec is all a guest is told.
type Spec struct {
	// Job names what to do: a job known to the guest, such as "scenario" or "exec".
	Job string `json:"job"`
	// Scenario is the scenario to run, for the jobs that run one.
	Scenario string `json:"scenario,omitempty"`
	// Agent is AgentOn or AgentOff.
	Agent string `json:"agent,omitempty"`
	// Law is the squeeze law the agent is told to follow; empty is the scenario's own choice.
	Law string `json:"law,omitempty"`
	// Short asks for the form of a scenario that fits CI.
	Short bool `json:"short,omitempty"`
	// LRU is "classic" or "mglru"; empty leaves the kernel's default.
	LRU string `json:"lru,omitempty"`
	// Argv is the command of an exec job.
	Argv []string `json:"argv,omitempty"`
	// Modules are loaded in this order from /modules.
	Modules []string `json:"modules,omitempty"`
	// Disk says whether there is a data disk to mount on /data.
	Disk bool `json:"disk,omitempty"`
	// System says that the disk holds a whole system, which the guest's init becomes. The job is
	// done by a service of it.
	System bool `json:"system,omitempty"`
	// Swap is the size of the zram swap device in bytes, 0 for none.
	Swap int64 `json:"swap,omitempty"`
}

// Message is one line from the guest. Exactly one of its fields is set.
type Message struct {
	// Hello is the first message: the guest's init is up.
	Hello *Hello `json:"hello,omitempty"`
	// Log is a line for people.
	Log string `json:"log,omitempty"`
	// Output is a piece of a command's output.
	Output *Output `json:"output,omitempty"`
	// Sample is something a job shows while it runs; its form is the job's.
	Sample json.RawMessage `json:"sample,omitempty"`
	// Artifact is a file to keep with the result.
	Artifact *Artifact `json:"artifact,omitempty"`
	// Run is what a scenario measured.
	Run *result.Run `json:"run,omitempty"`
	// Done is the last message.
	Done *Done `json:"done,omitempty"`
}

// Hello tells what booted.
type Hello struct {
	// Release is uname -r.
	Release string `json:"release"`
	// LRU is "classic" or "mglru", as it is after the Spec's wish was carried out.
	LRU string `json:"lru"`
	// UptimeMS is the guest's uptime in milliseconds.
	UptimeMS int64 `json:"uptime_ms"`
}

// Output is a piece of what a command wrote.
type Output struct {
	// Stream is 1 for standard output and 2 for standard error.
	Stream int    `json:"stream"`
	Data   []byte `json:"data"`
}

// Artifact is a named text.
type Artifact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Done ends the conversation.
type Done struct {
	// Error is why the job could not be done; empty when it could.
	Error string `json:"error,omitempty"`
	// Code is the exit code of an exec job's command.
	Code int `json:"code"`
}

// Write sends one message.
func Write(w io.Writer, m Message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if _, err := w.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	return nil
}

// Read calls f for every message until r ends or f returns an error. A line that is no message
// (firmware and early kernels may write to any port) is handed on as a Log.
func Read(r io.Reader, f func(Message) error) error {
	br := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := br.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			var m Message
			if jerr := json.Unmarshal(line, &m); jerr != nil {
				m = Message{Log: "not a message: " + string(line)}
			}
			if ferr := f(m); ferr != nil {
				return ferr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the guest's messages: %w", err)
		}
	}
}
