package postgrestest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/metrics/partstest"
)

// Options change a server from the usual.
type Options struct {
	Fsync    bool     // wait for the disk, as real servers do
	Settings []string // of postgresql.conf, such as "max_connections=10"

	// Dir is an empty folder for the data, by default one below /tmp. It is removed with
	// the server.
	Dir string
}

// owner is a user of the system and their group.
type owner struct{ uid, gid int }

// Server is a PostgreSQL in a temporary folder, listening on a unix socket there. Its
// methods must not be called concurrently.
type Server struct {
	dir  string // of the socket and the log
	data string
	bin  string // of PostgreSQL's programs

	settings []string
	owner    *owner     // the user who runs the server; nil for our own
	cmd      *exec.Cmd  // nil while the server does not run
	exited   chan error // closed when the process has ended
}

// Start starts a server for one test, which ends with it.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	partstest.Need(t, "postgres")
	s, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)

	return s
}

// programs is where the server's programs are: in the folder PROMPTSPOOL_POSTGRES, if that is
// set, or where Debian installs them, which is not on the PATH.
func programs() string {
	return filepath.Join(cmp.Or(os.Getenv("PROMPTSPOOL_POSTGRES"), "/usr/lib/postgresql/*/bin"), "postgres")
}

// start creates a cluster and starts its server.
func start(o Options) (*Server, error) {
	versions, _ := filepath.Glob(programs())
	if len(versions) == 0 {
		return nil, errors.New("postgrestest: there is no PostgreSQL server at " + programs() +
			"; install Debian's postgresql package")
	}
	slices.Sort(versions)

	// Below /tmp, because the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "psp-pg-")
	if err != nil {
		return nil, err
	}

	s := &Server{dir: dir, data: o.Dir, bin: filepath.Dir(versions[len(versions)-1])}
	if s.data == "" {
		s.data = filepath.Join(dir, "data")
	}
	if err := s.prepare(o); err != nil {
		s.close()
		return nil, err
	}

	return s, nil
}

// prepare creates the cluster and starts the server.
func (s *Server) prepare(o Options) error {
	if err := s.giveAway(); err != nil {
		return err
	}

	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	initdb.SysProcAttr = s.owner.process(0)
	initdb.Dir = s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("postgrestest: initdb: %w\n%s", err, out)
	}

	// Most tests never kill the server, and are much faster if it does not wait for the
	// disk.
	settings := []string{
		"listen_addresses=", "max_connections=100", "shared_buffers=64MB", "fsync=off",
		"synchronous_commit=off", "full_page_writes=off", "autovacuum_naptime=5s", "logging_collector=off",
	}
	if o.Fsync {
		settings = append(settings, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	}
	s.settings = append(settings, o.Settings...)

	return s.run()
}

// Standby starts a copy that follows the server, which is stopped for it: no connection
// survives. From then on each commit of the server waits for it. Promote makes the standby
// take over.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "psp-pg-")
	if err != nil {
		t.Fatal(err)
	}

	settings := append(slices.Clone(s.settings), "primary_conninfo=user=postgres host="+s.dir)
	b := &Server{dir: dir, data: filepath.Join(dir, "data"), bin: s.bin, settings: settings}
	t.Cleanup(b.close)
	if err := b.giveAway(); err != nil {
		t.Fatal(err)
	}

	// The files of a server that is stopped, because pg_basebackup is not in every package.
	s.Stop(t)
	fork := exec.Command("sh", "-c", `cp -Rp "$0" "$1" && touch "$1/standby.signal"`, s.data, b.data)
	fork.SysProcAttr = b.owner.process(0)
	fork.Dir = dir
	if out, err := fork.CombinedOutput(); err != nil {
		t.Fatalf("postgrestest: cp: %v\n%s", err, out)
	}
	s.Restart(t)
	b.Restart(t)

	// Only now: without a standby, commits of the server would wait forever.
	run(t, s.DSN("postgres"),
		`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)

	return b
}

// Promote makes a standby accept writes.
func (s *Server) Promote(t testing.TB) { t.Helper(); run(t, s.DSN("postgres"), `SELECT pg_promote()`) }

// giveAway gives the folders to the user who will run the server, which refuses to run as
// root.
func (s *Server) giveAway() error {
	if os.Getuid() != 0 {
		return nil
	}

	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
		if err != nil {
			return fmt.Errorf("postgrestest: root may not run PostgreSQL, and there is no other user: %w", err)
		}
	}

	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	s.owner = &owner{uid, gid}
	if err := os.Chown(s.dir, uid, gid); err != nil {
		return err
	}

	// A folder of Options.Dir exists already; any other is created by initdb.
	if _, err := os.Stat(s.data); err == nil {
		return os.Chown(s.data, uid, gid)
	}
	return nil
}

// run starts the process and waits until it accepts connections.
func (s *Server) run() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	args := []string{"-D", s.data, "-k", s.dir}
	for _, setting := range append(s.settings, "unix_socket_directories="+s.dir) {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log

	// The server must not outlive a test binary that is killed. The kernel sends the
	// signal when the thread that started the process ends, so that thread must stay
	// until then. It must not end with its goroutine either, because it may have started
	// other processes before.
	s.cmd.SysProcAttr = s.owner.process(syscall.SIGQUIT)
	s.exited = make(chan error)
	started := make(chan error)
	go func(cmd *exec.Cmd, exited chan error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}(s.cmd, s.exited)
	if err := <-started; err != nil {
		s.cmd = nil
		return fmt.Errorf("postgrestest: %w", err)
	}

	return s.await()
}

// startTimeout bounds how long a server takes to start, also after a crash, and to end.
const startTimeout = 60 * time.Second

// await waits until the server accepts connections.
func (s *Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	for {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}

		select {
		case <-s.exited:
			return fmt.Errorf("postgrestest: the server ended:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("postgrestest: the server does not start: %w\n%s", err, s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN returns the connection string of a database of the server, for its owner.
func (s *Server) DSN(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.dir
}

// Database creates an empty database for one test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return database(t, s.DSN("postgres"), "")
}

// Pid returns the process id; a test may stop the process with SIGSTOP.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Data returns the folder of the data.
func (s *Server) Data() string { return s.data }

// Log returns the end of the server's log.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return strings.TrimSpace(string(text[max(0, len(text)-4096):]))
}

// WholeLog returns the server's log.
func (s *Server) WholeLog(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Stop stops the server cleanly, but without waiting for its clients (PostgreSQL's
// "fast").
func (s *Server) Stop(t testing.TB) { t.Helper(); s.end(t, syscall.SIGINT) }

// Kill ends the server and its children immediately, like a crash of the machine. The
// system still writes what it has buffered.
func (s *Server) Kill(t testing.TB) { t.Helper(); s.end(t, syscall.SIGQUIT) }

// end sends a signal and waits for the process to end.
func (s *Server) end(t testing.TB, signal os.Signal) {
	t.Helper()
	if s.cmd == nil {
		t.Fatal("postgrestest: the server does not run")
	}

	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		t.Fatalf("postgrestest: the server does not end:\n%s", s.Log())
	}
	s.cmd = nil
}

// Restart starts a server that was stopped or killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// close ends the server and removes its folders.
func (s *Server) close() {
	if s.cmd != nil {
		// A process that a test has stopped would not notice the second signal.
		_ = s.cmd.Process.Signal(resume)
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.exited
		s.cmd = nil
	}

	_ = os.RemoveAll(s.data)
	_ = os.RemoveAll(s.dir)
}
