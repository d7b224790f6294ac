package auth

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"promptspool/api/wire"
)

// The methods in this file are those of an operator for accounts, which people call projects.

// Projects lists all projects, oldest first.
func (o Operator) Projects(ctx context.Context) ([]wire.Account, error) {
	return o.people.store.Projects(ctx)
}

// CreateProject makes a project. One of this name that exists is wire.CodeConflict.
func (o Operator) CreateProject(ctx context.Context, name string) (wire.Account, error) {
	if faults := checkAccount(name); faults != nil {
		return wire.Account{}, wire.Invalid(faults...)
	}

	a, err := o.people.store.CreateProject(ctx, name)
	if err != nil {
		return a, err
	}
	return a, o.people.Note(ctx, ofAccount(a.ID, name), "create project", name, "")
}

// FoundProject makes a project that the person of a session owns, and opens it there. Errors are
// wire.CodeInvalid and wire.CodeConflict for its name, and wire.CodeForbidden if sign-up is closed.
func (p *People) FoundProject(ctx context.Context, s wire.SignedIn, name string) error {
	if p.config.SignUp == wire.SignUpClosed {
		return wire.Errorf(wire.CodeForbidden, "This server is started with --signup closed: only an operator makes "+
			"projects, with `promptspool projects create`.")
	}
	faults := checkAccount(name)
	if slices.Contains(p.config.GroupProjects, name) {
		faults = []wire.FieldError{{
			Field:  "project",
			Reason: "is one that --oidc-role gives roles in: choose another one",
		}}
	}
	if faults != nil {
		return wire.Invalid(faults...)
	}

	u, err := p.store.FoundProject(ctx, s.User.ID, name, p.now())
	if err != nil {
		return err
	}
	if err := p.Note(ctx, u, "create project", name, "as owner"); err != nil {
		return err
	}

	return p.store.OpenAccount(ctx, hash(s.Token), u.AccountID)
}

// RenameProject renames a project. It keeps its id, and with it everything that it owns.
func (o Operator) RenameProject(ctx context.Context, name, to string) (wire.Account, error) {
	if faults := checkAccount(to); faults != nil {
		return wire.Account{}, wire.Invalid(faults...)
	}
	return o.changeProject(ctx, name, wire.ProjectChange{Name: to}, "rename project", "was "+name)
}

// ArchiveProject archives a project, or takes that back. No one can open an archived
// project, and its keys do not work; nothing is deleted.
func (o Operator) ArchiveProject(ctx context.Context, name string, archive bool) (wire.Account, error) {
	action := "archive project"
	if !archive {
		action = "take back archiving"
	}
	return o.changeProject(ctx, name, wire.ProjectChange{Archive: &archive}, action, "")
}

func (o Operator) changeProject(
	ctx context.Context, name string, c wire.ProjectChange, action, detail string,
) (wire.Account, error) {
	if name == BootstrapAccount {
		return wire.Account{}, wire.Errorf(wire.CodeConflict, "The project %s is the operator's own: "+
			"the bootstrap key and the setup link lead there. It keeps its name, and cannot be archived.", name)
	}

	c.At = o.people.now()
	a, err := o.people.store.ChangeProject(ctx, name, c)
	if err != nil {
		return a, err
	}

	return a, o.people.Note(ctx, ofAccount(a.ID, a.Name), action, a.Name, detail)
}

// Apply makes what a file wants and is missing: projects, the roles of their people, and
// keys by their names. It changes nothing else, and returns a sentence for each change,
// with the secrets of new keys. Everything is checked before anything is changed; with dry
// nothing is.
func (o Operator) Apply(ctx context.Context, w wire.Wanted, dry bool) (done []string, err error) {
	plan := plan{Operator: o}
	if err := plan.read(ctx); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(w.Projects))
	for _, name := range names {
		plan.project(name, w.Projects[name])
	}
	// Last, so that no other step fails after a secret was made that is shown only once.
	for _, name := range names {
		for _, key := range slices.Sorted(maps.Keys(w.Projects[name].Keys)) {
			plan.key(name, key, w.Projects[name].Keys[key])
		}
	}
	if plan.faults != nil {
		return nil, wire.Invalid(plan.faults...)
	}

	for _, step := range plan.steps {
		said := step.says
		if !dry {
			secret, err := step.do(ctx)
			if err != nil {
				return done, err
			}
			if secret != "" {
				said += ": " + string(secret) + " (shown only now)"
			}
		}
		done = append(done, said)
	}

	return done, nil
}

// plan is what a file wants that is not there.
type plan struct {
	Operator

	projects []wire.Account
	members  []wire.User
	existing []wire.Key

	faults []wire.FieldError
	steps  []planned
}

// planned is a change: what is said of it, and how it is made. Only that of a key has a secret.
type planned struct {
	says string
	do   func(ctx context.Context) (secret wire.Secret, err error)
}

func (p *plan) read(ctx context.Context) (err error) {
	p.projects, err = p.Projects(ctx)
	if err == nil {
		p.members, err = p.People(ctx, "")
	}
	if err == nil {
		p.existing, err = p.keys.Keys(ctx)
	}

	return err
}

func (p *plan) fault(field, reason string) {
	p.faults = append(p.faults, wire.FieldError{Field: field, Reason: reason})
}

func (p *plan) project(name string, w wire.WantedProject) {
	if checkAccount(name) != nil {
		p.fault(name, "is no name of a project: it must be 1 to 64 of a-z 0-9 . _ and -")
		return
	}

	i := slices.IndexFunc(p.projects, func(a wire.Account) bool { return a.Name == name })
	switch {
	case i < 0:
		p.steps = append(p.steps, planned{"created project " + name, func(ctx context.Context) (wire.Secret, error) {
			_, err := p.CreateProject(ctx, name)
			return "", err
		}})
	case p.projects[i].ArchivedAt != nil:
		p.fault(name, "is archived; take that back first: promptspool projects archive --undo "+name)
		return
	}

	for _, typed := range slices.Sorted(maps.Keys(w.People)) {
		p.person(name, typed, w.People[typed])
	}
}

func (p *plan) person(project, typed string, role wire.Role) {
	field := project + ".people." + typed
	email, faults := checkEmail(typed)
	if !role.Known() {
		faults = append(faults, errRole())
	}
	if faults != nil {
		p.fault(field, faults[0].Reason)
		return
	}

	for _, u := range p.members {
		if u.Email == email && u.AccountName == project && u.ByHand() == role && u.DisabledAt == nil {
			return
		}
	}
	says := fmt.Sprintf("%s is %s in %s", email, role, project)
	p.steps = append(p.steps, planned{says, func(ctx context.Context) (wire.Secret, error) {
		u, err := p.people.store.SetMember(ctx, email, project, role, p.people.now().UTC())
		if err != nil {
			return "", err
		}
		return "", p.people.Note(ctx, ofAccount(u.AccountID, project), "set role", email, string(role))
	}})
}

func (p *plan) key(project, name string, w wire.WantedKey) {
	field, now := project+".keys."+name, p.keys.now()
	end, err := wire.ParseKeyEnd(w.Expires, now)
	if err != nil {
		p.fault(field, "expires must be a time in the future, such as 90d, 12h or 2027-01-31")
		return
	}

	wanted := wire.NewKey{Account: project, Name: name, Scope: w.Scope, Prefix: w.Prefix, ExpiresAt: end}
	if err := p.keys.check(wanted); err != nil {
		p.fault(field, err.Error())
		return
	}
	for _, k := range p.existing {
		if k.AccountName != project || k.Name != name || k.Off(now) || k.Successor != "" {
			continue
		}
		if k.Scope != w.Scope || k.Prefix != w.Prefix {
			p.fault(field, fmt.Sprintf("is key %s already, with scope %s and the prefix %q; "+
				"what a key may do never changes: revoke it, or choose another name", k.ID, k.Scope, k.Prefix))
		}
		return
	}

	p.steps = append(p.steps, planned{
		fmt.Sprintf("created key %s of %s", name, project),
		func(ctx context.Context) (wire.Secret, error) {
			secret, k, err := p.keys.CreateKey(ctx, wanted)
			if err != nil {
				return "", err
			}
			return secret, p.people.Note(ctx, ofAccount(k.AccountID, project), "create key", k.ID, k.AuditDetail())
		},
	})
}

// Operator acts as an owner of any account: a person who may run commands on the server's
// machine.
type Operator struct {
	people *People
	keys   *Auth // for Apply only
}

// Operator returns an Operator. The caller must have verified that it acts for one.
func (p *People) Operator(keys *Auth) Operator { return Operator{p, keys} }

// ofAccount returns the operator as an owner of an account.
func ofAccount(id, name string) wire.User {
	return wire.User{AccountID: id, AccountName: name, Email: wire.Operator, Role: wire.RoleOwner}
}

// People lists the people of the account of this name, or of all accounts if it is "".
func (o Operator) People(ctx context.Context, account string) ([]wire.User, error) {
	all, err := o.people.store.Everybody(ctx)
	others := func(u wire.User) bool { return account != "" && u.AccountName != account }
	return slices.DeleteFunc(all, others), err
}

// Invite makes a code that lets one person join an account, and the account if it does
// not exist.
func (o Operator) Invite(
	ctx context.Context, account string, role wire.Role,
) (wire.Secret, wire.Invite, error) {
	faults := checkAccount(account)
	if !role.Known() {
		faults = append(faults, errRole())
	}
	if faults != nil {
		return "", wire.Invite{}, wire.Invalid(faults...)
	}

	id, err := o.people.store.Account(ctx, account)
	if err != nil {
		return "", wire.Invite{}, err
	}
	return o.people.Invite(ctx, ofAccount(id, account), role)
}

// MakeReset makes a code with which a person chooses a new password; see
// People.MakeReset.
func (o Operator) MakeReset(ctx context.Context, email string) (wire.Secret, wire.User, error) {
	found, err := o.find(ctx, email)
	if err != nil {
		return "", wire.User{}, err
	}
	u := found[0]
	return o.people.makeReset(ctx, ofAccount(u.AccountID, u.AccountName), "", nil, u.ID)
}

// SetDisabled disables or enables a person in all their accounts; see People.SetDisabled.
func (o Operator) SetDisabled(ctx context.Context, email string, disabled bool) (wire.User, error) {
	found, err := o.find(ctx, email)
	if err != nil {
		return wire.User{}, err
	}

	change := wire.UserChange{Disabled: &disabled, At: o.people.now().UTC()}
	changed, err := o.people.store.ChangeUser(ctx, "", found[0].ID, change)
	for _, u := range found {
		if err == nil {
			err = o.people.Note(ctx, ofAccount(u.AccountID, u.AccountName), disabling(disabled), u.Email, "")
		}
	}
	return changed, err
}

// find returns the person with this email, as a person typed it, in each of their accounts.
func (o Operator) find(ctx context.Context, email string) ([]wire.User, error) {
	typed := written(email)
	all, err := o.people.store.Everybody(ctx)
	found := slices.DeleteFunc(all, func(u wire.User) bool { return u.Email != typed })
	if err == nil && len(found) == 0 {
		err = wire.Errorf(wire.CodeNotFound,
			"No one signs in as %q. `promptspool people list` shows everyone.", email)
	}
	return found, err
}
