// Package systemd tells the service manager how memagent is: READY=1 after the
// first tick that decided, STATUS= in a sentence, WATCHDOG=1 while the loop
// ticks, STOPPING=1 at the end (sd_notify(3)). Without a service manager that
// listens it does nothing.
//
// Messages are sent from a goroutine of their own: the loop neither waits for
// a manager whose queue is full nor for one that is gone.
package systemd
