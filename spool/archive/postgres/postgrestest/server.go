package postgrestest

import (
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
)

// Options say how a server of a test differs from the usual.
type Options struct {
	Fsync    bool     // wait for the disk, as a real one does
	Settings []string // more of postgresql.conf: "max_connections=10"
	Dir      string   // where its data lies, empty; "": a folder below /tmp. It is removed with the server
}

// Server is a PostgreSQL in a temporary folder, on a unix socket there. Its methods are for one goroutine at a time.
type Server struct {
	dir  string // its socket and its log
	data string
	bin  string

	settings []string
	cred     *syscall.Credential
	cmd      *exec.Cmd
	exited   chan error // closed when the process has ended
}

// Start starts a server for one test, which ends with it.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// bins is where Debian puts the server's programs, which are not on the PATH.
const bins = "/usr/lib/postgresql/*/bin/postgres"

// start makes a cluster and starts it.
func start(o Options) (*Server, error) {
	found, _ := filepath.Glob(bins)
	if len(found) == 0 {
		return nil, errors.New("postgrestest: there is no PostgreSQL server at " + bins + "; install Debian's postgresql package")
	}
	slices.Sort(found)
	// Below /tmp: the path of a socket has 107 bytes at most.
	dir, err := os.MkdirTemp("/tmp", "psp-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, data: o.Dir, bin: filepath.Dir(found[len(found)-1])}
	if s.data == "" {
		s.data = filepath.Join(dir, "data")
	}
	if err := s.prepare(o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) prepare(o Options) error {
	if err := s.drop(); err != nil {
		return err
	}
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	initdb.Dir = s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("postgrestest: initdb: %w\n%s", err, out)
	}
	settings := []string{"listen_addresses=", "max_connections=100", "shared_buffers=64MB", "fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"autovacuum_naptime=5s", "logging_collector=off"}
	if o.Fsync {
		settings = append(settings, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	}
	s.settings = append(settings, o.Settings...)
	return s.run()
}

// Standby starts a copy of the server that follows it, and takes over when it is promoted. From then on a commit waits for it.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "psp-pg-")
	if err != nil {
		t.Fatal(err)
	}
	b := &Server{dir: dir, data: filepath.Join(dir, "data"), bin: s.bin, settings: s.settings}
	t.Cleanup(b.close)
	if err := b.drop(); err != nil {
		t.Fatal(err)
	}
	backup := exec.Command(filepath.Join(s.bin, "pg_basebackup"), "-h", s.dir, "-U", "postgres", "-D", b.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	backup.SysProcAttr = &syscall.SysProcAttr{Credential: b.cred}
	backup.Dir = dir
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("postgrestest: pg_basebackup: %v\n%s", err, out)
	}
	b.Restart(t)
	run(t, s.DSN("postgres"), `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	return b
}

// Promote makes a standby take writes.
func (s *Server) Promote(t testing.TB) { t.Helper(); run(t, s.DSN("postgres"), `SELECT pg_promote()`) }

// drop finds who may run a server, which root may not, and gives them the folders.
func (s *Server) drop() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return fmt.Errorf("postgrestest: root may not run PostgreSQL, and there is nobody else: %w", err)
		}
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(s.dir, uid, gid); err != nil {
		return err
	}
	if _, err := os.Stat(s.data); err == nil {
		return os.Chown(s.data, uid, gid)
	}
	return nil
}

// run starts the process and waits until it takes connections.
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
	// It shall not outlive a test binary that is killed. The signal comes when the thread that started it ends, so that thread stays; and
	// it must not end with this goroutine either, for it may have started other processes before.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGQUIT}
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

// startPatience is how long a server may take to start, also one that recovers from a crash.
const startPatience = 60 * time.Second

func (s *Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
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

// DSN says how to connect to a database of the server, as its owner.
func (s *Server) DSN(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.dir
}

// Database makes an empty database for one test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return database(t, s.DSN("postgres"), "")
}

// Pid is the process; a test may stop it with SIGSTOP.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Data is the folder of its data.
func (s *Server) Data() string { return s.data }

// Log is the end of what the server has written to its log.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return strings.TrimSpace(string(text[max(0, len(text)-4096):]))
}

// WholeLog is all that the server has written to its log.
func (s *Server) WholeLog(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Stop stops the server in good order, but without waiting for its clients ("fast").
func (s *Server) Stop(t testing.TB) { t.Helper(); s.end(t, syscall.SIGINT) }

// Kill ends the server and all of its children at once, as a crash of the machine would, apart from what the system still writes.
func (s *Server) Kill(t testing.TB) { t.Helper(); s.end(t, syscall.SIGQUIT) }

func (s *Server) end(t testing.TB, signal os.Signal) {
	t.Helper()
	if s.cmd == nil {
		t.Fatal("postgrestest: the server does not run")
	}
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
	case <-time.After(startPatience):
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
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.exited
		s.cmd = nil
	}
	_ = os.RemoveAll(s.data)
	_ = os.RemoveAll(s.dir)
}
