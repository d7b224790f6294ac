package dashboard

import (
	"net/http"

	"promptspool/api/wire"
)

func (d *Dashboard) signRoutes() {
	d.open("GET /sign-in", d.signInPage)
	d.open("POST /sign-in", d.signIn)
	d.open("GET /sign-up", d.signUpPage)
	d.open("POST /sign-up", d.signUp)
	d.open("GET /reset-password", d.resetPage)
	d.open("POST /reset-password", d.resetPassword)

	d.handle("POST /sign-out", wire.RoleViewer, d.signOut)
	d.handle("GET /password", wire.RoleViewer, d.passwordPage)
	d.handle("POST /password", wire.RoleViewer, d.setPassword)
}

// open registers a page for everybody, signed in or not.
func (d *Dashboard) open(pattern string, page func(c *call) error) {
	d.routes = append(d.routes, Route{Pattern: pattern})

	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		// FormValue, which pages use, would hide that a form could not be read.
		c := &call{Request: r, w: w}
		err := c.readForm()
		if err == nil {
			err = page(c)
		}
		if err != nil {
			d.fail(c, err)
		}
	})
}

// signView is what the pages to sign in, to sign up and to choose a new password show.
type signView struct {
	Email, Next, Account, Code string
	Pending                    string       // a form that waits, see resume.go; "" for none
	Invite                     *wire.Invite // the invite that Code belongs to, if any
	Error                      *wire.Error
	Connection                 connection
	Open                       bool // accounts can be created without an invite
}

func (d *Dashboard) signView(c *call) signView {
	return signView{
		Email:      c.FormValue("email"),
		Next:       localAddress(c.FormValue("next")),
		Account:    c.FormValue("account"),
		Code:       c.FormValue("code"),
		Connection: d.connection(c.Request),
		Open:       d.People.SignUp() == wire.SignUpOpen,

		// From a post's body only: a link must not carry a form.
		Pending: c.PostForm.Get("pending"),
	}
}

func (d *Dashboard) signInPage(c *call) error {
	return d.show(c, http.StatusOK, "sign-in", "Sign in", "", d.signView(c))
}

func (d *Dashboard) signIn(c *call) error {
	f := c.PostForm
	s, err := d.People.SignIn(c.Context(), f.Get("email"), f.Get("password"), d.browser(c.Request))
	if err != nil {
		return d.signFault(c, "sign-in", "Sign in", d.signView(c), err)
	}

	// A form that was waiting is shown immediately, to the session that begins here.
	d.setSession(c.w, s)
	c.SignedIn = s

	return d.resume(c)
}

// signFault shows a form again with its error. Its fields are also kept when the server is
// too busy to sign people in.
func (d *Dashboard) signFault(c *call, name, title string, v signView, err error) error {
	e := wire.AsError(err)
	if e.Status() >= 500 && e.Code != wire.CodeUnavailable {
		return err
	}

	setRetryAfter(c.w.Header(), e)
	v.Error = e

	return d.show(c, e.Status(), name, title, "", v)
}

// signUpPage shows whoever opens an invite's link which account they would join.
func (d *Dashboard) signUpPage(c *call) error {
	v, err := d.signUpView(c)
	if err != nil {
		return d.signFault(c, "sign-up", "Sign up", v, err)
	}

	return d.show(c, http.StatusOK, "sign-up", "Sign up", "", v)
}

// signUpView returns the view of the form, and an error if its code is not valid.
func (d *Dashboard) signUpView(c *call) (signView, error) {
	v := d.signView(c)
	if v.Code == "" {
		return v, nil
	}

	invite, err := d.People.Invitation(c.Context(), wire.Secret(v.Code), ip(c.Request))
	if err != nil {
		return v, err
	}
	v.Invite = &invite

	return v, nil
}

func (d *Dashboard) signUp(c *call) error {
	v, err := d.signUpView(c)
	if err != nil {
		return d.signFault(c, "sign-up", "Sign up", v, err)
	}

	f := c.PostForm
	application := wire.Application{
		Email:    f.Get("email"),
		Password: f.Get("password"),
		Code:     wire.Secret(f.Get("code")),
		Account:  f.Get("account"),
	}
	s, err := d.People.Join(c.Context(), application, ip(c.Request))
	if err != nil {
		return d.signFault(c, "sign-up", "Sign up", v, err)
	}

	d.setSession(c.w, s)

	return c.redirect("/", "")
}

// resetPage asks whoever opens a reset link for a new password.
func (d *Dashboard) resetPage(c *call) error {
	v := d.signView(c)
	u, err := d.People.ResetOf(c.Context(), wire.Secret(v.Code), ip(c.Request))
	if err != nil {
		return d.resetFault(c, err)
	}
	v.Email = u.Email

	return d.show(c, http.StatusOK, "reset", "Choose a new password", "", v)
}

func (d *Dashboard) resetPassword(c *call) error {
	code := wire.Secret(c.PostForm.Get("code"))
	s, err := d.People.ResetPassword(c.Context(), code, c.PostForm.Get("password"), ip(c.Request))
	if err != nil {
		return d.resetFault(c, err)
	}

	d.setSession(c.w, s)

	return c.redirect("/", "password")
}

// resetFault shows an error: with the form if another password would be accepted,
// otherwise without it.
func (d *Dashboard) resetFault(c *call, err error) error {
	e := wire.AsError(err)
	if e.Status() >= 500 {
		return err
	}

	v := signView{Error: e, Connection: d.connection(c.Request)}
	if e.Code == wire.CodeInvalid {
		v.Code, v.Email = c.FormValue("code"), c.FormValue("email")
	}

	return d.show(c, e.Status(), "reset", "Choose a new password", "", v)
}

func (d *Dashboard) signOut(c *call) error {
	if err := d.People.SignOut(c.Context(), c.Token); err != nil {
		return err
	}

	d.setSession(c.w, wire.SignedIn{})

	return c.redirect("/sign-in", "signed-out")
}

func (d *Dashboard) passwordPage(c *call) error {
	v := signView{Connection: d.connection(c.Request)}

	return d.show(c, http.StatusOK, "password", "Change your password", "", v)
}

func (d *Dashboard) setPassword(c *call) error {
	s, err := d.People.SetPassword(c.Context(), c.User, c.PostForm.Get("old"), c.PostForm.Get("password"))
	if wire.IsCode(err, wire.CodeUnauthorized) {
		// The original message mentions an email, which this form does not ask for.
		err = wire.Errorf(wire.CodeUnauthorized, "The current password is wrong.")
	}
	if err != nil {
		return d.signFault(c, "password", "Change your password", d.signView(c), err)
	}

	d.setSession(c.w, s)

	return c.redirect("/password", "password")
}
