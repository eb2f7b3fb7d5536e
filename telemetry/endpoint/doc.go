// Package endpoint is where memagent listens: on a unix socket or on one TCP
// address, for a handful of clients that are trusted to read and not trusted
// to behave.
//
// A client that is slow, stuck or gone costs one of MaxConns connections until
// a deadline cuts it off. Nothing that memagent does waits for a client: the
// loop hands figures to boards and counters, and ending closes every
// connection at once, in the middle of an answer if need be.
package endpoint
