package top

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/memagent/memagent/telemetry/status"
)

// Source answers what is shown; a status.Client is one.
type Source interface {
	Status(ctx context.Context) (*status.Status, error)
}

// Run shows source live on a terminal until somebody quits or ctx ends. It
// asks once before it takes the screen and returns the error of that, if any;
// later ones are shown, and it goes on asking.
func Run(ctx context.Context, source Source, every time.Duration, in io.Reader, out io.Writer) error {
	first, err := source.Status(ctx)
	if err != nil {
		return err
	}
	m := &model{ctx: ctx, source: source, every: every, status: first, view: View{Sort: colResident}, width: 80, height: 24}
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil // being told to stop is how it ends
	}
	return err
}

// model is the program's state, changed by messages only.
type model struct {
	ctx    context.Context
	source Source
	every  time.Duration

	status        *status.Status
	trouble       string // of the last question
	view          View
	width, height int
}

// answered is what came of a question.
type answered struct {
	status *status.Status
	err    error
}

// due says that it is time for the next question.
type due struct{}

// Init begins to ask.
func (m *model) Init() tea.Cmd { return m.wait() }

func (m *model) wait() tea.Cmd {
	return tea.Tick(m.every, func(time.Time) tea.Msg { return due{} })
}

// ask is carried out beside the program; there is one question at a time.
func (m *model) ask() tea.Msg {
	s, err := m.source.Status(m.ctx)
	return answered{s, err}
}

// Update takes one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case due:
		if m.view.Paused {
			return m, m.wait()
		}
		return m, m.ask
	case answered:
		if m.trouble = ""; msg.err != nil {
			m.trouble = msg.err.Error()
		} else if !m.view.Paused {
			m.status = msg.status
		}
		return m, m.wait()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	v := &m.view
	page := max(1, m.height-5)
	switch k.String() {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "space":
		v.Paused = !v.Paused
	case "n":
		v.Nodes = !v.Nodes
	case "r":
		v.Reverse = !v.Reverse
	case "up", "k":
		v.row--
	case "down", "j":
		v.row++
	case "pgup":
		v.row -= page
	case "pgdown":
		v.row += page
	case "home", "g":
		v.row = 0
	case "end", "G":
		v.row = len(m.status.Cgroups)
	case "left", "h":
		v.node--
	case "right":
		v.node++
	case "<", "shift+tab":
		m.sortBy((v.Sort + len(columns) - 1) % len(columns))
	case ">", "tab":
		m.sortBy((v.Sort + 1) % len(columns))
	default:
		for i, c := range columns {
			if k.String() == string(c.key) {
				m.sortBy(i)
			}
		}
	}
	return nil
}

// sortBy orders by a column, and the other way round where that is how it is
// ordered already.
func (m *model) sortBy(col int) {
	v := &m.view
	v.Reverse = v.Sort == col && !v.Reverse
	v.Sort, v.row = col, 0
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.width > 0 && m.height > 0 {
		v.SetContent(m.view.screen(m.status, m.trouble, m.width, m.height))
	}
	return v
}
