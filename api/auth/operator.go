package auth

import (
	"context"
	"slices"
	"strings"

	"promptspool/api/wire"
)

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
	typed := strings.ToLower(strings.TrimSpace(email))
	all, err := o.people.store.Everybody(ctx)
	found := slices.DeleteFunc(all, func(u wire.User) bool { return u.Email != typed })
	if err == nil && len(found) == 0 {
		err = wire.Errorf(wire.CodeNotFound,
			"No one signs in as %q. `promptspool people list` shows everyone.", email)
	}
	return found, err
}
