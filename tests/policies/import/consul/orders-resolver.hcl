Kind           = "service-resolver"
Name           = "orders"
ConnectTimeout = "1s"
RequestTimeout = "20s"
