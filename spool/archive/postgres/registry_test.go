package postgres_test

import (
	"testing"

	"promptspool/api/auth"
	"promptspool/api/auth/authtest"
	"promptspool/registry"
	"promptspool/registry/registrytest"
	"promptspool/spool/archive/postgres/postgrestest"
)

func TestRegistry(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registry.Store { return open(t, postgrestest.DSN(t)) })
}

func TestAuth(t *testing.T) {
	authtest.Run(t, func(t *testing.T) auth.Store { return open(t, postgrestest.DSN(t)) })
}

func TestPeople(t *testing.T) {
	authtest.RunPeople(t, func(t *testing.T) auth.PeopleStore { return open(t, postgrestest.DSN(t)) })
}
