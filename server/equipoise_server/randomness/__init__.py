"""The only source of randomness: a keyed stream, exact samplers on it, and discrete noise.

Everything here is a pure function of its arguments and of the words of one `KeyedStream`, and gives the same
values on every machine: no floating-point exp, log, pow or reduction decides an output. The randomness is
computational: every statistical statement in this package is about ideally random words, and holds for the
real ones against whoever cannot tell ChaCha20 and HKDF-SHA256 from random functions.
"""
