// Package standin builds and controls the stand-in driver, a shared library
// with the runtime's binary interface whose streams are threads. It is for
// tests.
package standin
