# SPDX-License-Identifier: MIT
"""TLS 1.3 by libssl itself, because python's ssl can't update keys."""

import ctypes
import ctypes.util

FUNCTIONS = {  # name: result, arguments
    "TLS_method": "p",
    "SSL_CTX_new": "pp",
    "SSL_CTX_free": " p",
    "SSL_CTX_ctrl": "lpilp",
    "SSL_CTX_use_certificate_chain_file": "ips",
    "SSL_CTX_use_PrivateKey_file": "ipsi",
    "SSL_new": "pp",
    "SSL_free": " p",
    "SSL_set_fd": "ipi",
    "SSL_connect": "ip",
    "SSL_accept": "ip",
    "SSL_key_update": "ipi",
    "SSL_do_handshake": "ip",
    "SSL_write": "ipsi",
    "SSL_read": "ippi",
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_long, "s": ctypes.c_char_p, " ": None}
SET_LEAST_VERSION, TLS_1_3, PEM = 123, 0x304, 1


def library():
    loaded = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
    for name, types in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, *function.argtypes = [TYPES[each] for each in types]
    return loaded


class RawTls:
    """Over a connected socket, which blocks. certificate: this side is the server. It verifies no peer."""

    def __init__(self, socket, certificate=None):
        self.socket = socket
        self.socket.settimeout(None)
        self.lib = library()
        self.context = self.lib.SSL_CTX_new(self.lib.TLS_method())
        self.lib.SSL_CTX_ctrl(self.context, SET_LEAST_VERSION, TLS_1_3, None)
        if certificate is not None:
            self.lib.SSL_CTX_use_certificate_chain_file(self.context, str(certificate.cert).encode())
            self.lib.SSL_CTX_use_PrivateKey_file(self.context, str(certificate.key).encode(), PEM)
        self.ssl = self.lib.SSL_new(self.context)
        self.lib.SSL_set_fd(self.ssl, socket.fileno())
        shake = self.lib.SSL_connect if certificate is None else self.lib.SSL_accept
        assert shake(self.ssl) == 1

    def update(self, times):
        """Updates the keys of the sending side, `times` times."""
        for _ in range(times):
            self.lib.SSL_key_update(self.ssl, 0)
            self.lib.SSL_do_handshake(self.ssl)

    def send(self, data):
        return self.lib.SSL_write(self.ssl, data, len(data))

    def read(self):
        """Some bytes; none at the end."""
        room = ctypes.create_string_buffer(65536)
        got = self.lib.SSL_read(self.ssl, room, len(room))
        return room.raw[: max(got, 0)]

    def close(self):
        self.lib.SSL_free(self.ssl)
        self.lib.SSL_CTX_free(self.context)
        self.socket.close()
