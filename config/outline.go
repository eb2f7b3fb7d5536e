package config

import (
	"bytes"
	"encoding/json"
)

// outline is the JSON schema of one value. It is made by the same functions
// that read a file, told to say what they would take: a schema beside them would
// drift.
type outline struct {
	Schema      string      `json:"$schema,omitempty"`
	ID          string      `json:"$id,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        any         `json:"type,omitempty"`
	Enum        []any       `json:"enum,omitempty"`
	Minimum     *int        `json:"minimum,omitempty"`
	Maximum     *int        `json:"maximum,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
	// Additional is false where other keys are errors.
	Additional *bool      `json:"additionalProperties,omitempty"`
	Items      *outline   `json:"items,omitempty"`
	MinItems   int        `json:"minItems,omitempty"`
	AnyOf      []*outline `json:"anyOf,omitempty"`
	at         *outline   // of a list: what is told next, about its entries
}

// properties keeps the order of the tables, which is the one to read them in.
type properties struct {
	names  []string
	values []*outline
}

// MarshalJSON writes an object with the keys in their order.
func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(p.values[i])
		if err != nil {
			return nil, err
		}
		b.WriteString(`"` + name + `":`)
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Schema returns the JSON schema (draft 2020-12) of a config file, for editors
// and for pipelines. It says less than Parse checks: units, bounds of sizes and
// what must fit together are in descriptions only. A drop-in need not have
// policies; Schema is of the main file.
func Schema() []byte {
	root := &outline{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "memagent.yaml",
	}
	outlineMapping(root, "", configKeys)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(err) // texts and numbers of the program itself
	}
	return b.Bytes()
}

// outlineMapping tells of a mapping with these keys.
func outlineMapping[T any](o *outline, want string, keys []key[T]) {
	o = o.here()
	closed := false
	o.Type, o.Additional, o.Properties = "object", &closed, &properties{}
	o.describe(want)
	for _, k := range keys {
		value := &outline{Description: k.about}
		switch {
		case k.words != nil:
			value.words(k.words)
		case k.truth:
			value.Type = "boolean"
		default:
			k.read(&reader{outline: value}, place{}, k.want, new(T))
		}
		o.Properties.names = append(o.Properties.names, k.name)
		o.Properties.values = append(o.Properties.values, value)
		if k.required && k.unless == "" {
			o.Required = append(o.Required, k.name)
		}
	}
}

// here returns what is told of next: the entries, of a list.
func (o *outline) here() *outline {
	if o.at != nil {
		return o.at
	}
	return o
}

func (o *outline) describe(want string) {
	if want == "" {
		return
	}
	if o.Description != "" {
		o.Description += "\n"
	}
	o.Description += "Want " + want + "."
}

func (o *outline) list(want string) {
	o.Type, o.MinItems, o.Items = "array", 1, &outline{}
	o.at = o.Items
	o.describe(want)
}

// text tells of a word, size, rate, share or time; of these, 0 needs no unit
// and is a number to YAML.
func (o *outline) text(want string) {
	o = o.here()
	o.Type = []string{"string", "integer"}
	o.describe(want)
}

func (o *outline) integer(want string, low, high int) {
	o = o.here()
	o.Type, o.Minimum, o.Maximum = "integer", &low, &high
	o.describe(want)
}

func (o *outline) words(words []string) {
	o = o.here()
	o.Type = "string"
	for _, w := range words {
		o.Enum = append(o.Enum, w)
		if w == "off" { // which YAML 1.1 readers take for false
			o.Type, o.Enum = nil, append(o.Enum, false)
		}
	}
}

// either adds one of several ways to give the value.
func (o *outline) either(want string) *outline {
	o = o.here()
	o.describe(want)
	o.AnyOf = append(o.AnyOf, &outline{})
	return o.AnyOf[len(o.AnyOf)-1]
}
