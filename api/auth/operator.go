package auth

import (
	"context"
	"strings"

	"promptspool/api/wire"
)

// Operator acts as an owner of any account: a person who may run commands on the server's
// machine.
type Operator struct{ people *People }

// Operator returns an Operator. The caller must have verified that it acts for one.
func (p *People) Operator() Operator { return Operator{p} }

// ofAccount returns the operator as an owner of an account.
func ofAccount(id, name string) wire.User {
	return wire.User{AccountID: id, AccountName: name, Email: wire.Operator, Role: wire.RoleOwner}
}

// People lists the people of the account of this name, or of all accounts if it is "".
func (o Operator) People(ctx context.Context, account string) ([]wire.User, error) {
	all, err := o.people.store.Everybody(ctx)
	if account == "" || err != nil {
		return all, err
	}

	var members []wire.User
	for _, u := range all {
		if u.AccountName == account {
			members = append(members, u)
		}
	}
	return members, nil
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
	u, err := o.find(ctx, email)
	if err != nil {
		return "", wire.User{}, err
	}
	return o.people.MakeReset(ctx, ofAccount(u.AccountID, u.AccountName), u.ID)
}

// SetDisabled disables or enables a person; see People.SetDisabled.
func (o Operator) SetDisabled(ctx context.Context, email string, disabled bool) (wire.User, error) {
	u, err := o.find(ctx, email)
	if err != nil {
		return wire.User{}, err
	}

	// The message for an owner says to promote someone else, which an operator has no
	// command for.
	changed, err := o.people.SetDisabled(ctx, ofAccount(u.AccountID, u.AccountName), u.ID, disabled)
	if wire.IsCode(err, wire.CodeConflict) {
		err = wire.Errorf(wire.CodeConflict, "%s is the last owner of the account %s, which needs one. "+
			"Invite another first: promptspool people invite --account %s --role owner",
			u.Email, u.AccountName, u.AccountName)
	}
	return changed, err
}

// find returns the person with this email, as a person typed it.
func (o Operator) find(ctx context.Context, email string) (wire.User, error) {
	u, _, err := o.people.store.UserByEmail(ctx, strings.ToLower(strings.TrimSpace(email)))
	if wire.IsCode(err, wire.CodeNotFound) {
		err = wire.Errorf(wire.CodeNotFound,
			"No one signs in as %q. `promptspool people list` shows everyone.", email)
	}
	return u, err
}
