# The same as shop.yaml, as people write it by hand.
Kind = "service-router"
Name = "shop"
Routes = [
  {
    Match { HTTP { PathPrefix = "/admin/" } }
    Destination { Service = "admin", RequestTimeout = "60s" }
  },
  {
    Match {
      HTTP {
        PathExact = "/checkout"
        Methods   = ["POST", "PUT"]
      }
    }
    Destination {
      Service               = "orders"
      NumRetries            = 2 // and the first attempt
      RetryOnConnectFailure = true
      RequestTimeout        = "5s"
    }
  },
  {
    Match { HTTP { PathPrefix = "/orders" } }
    Destination {
      Service            = "orders"
      NumRetries         = 5
      RetryOn            = ["reset", "cancelled"]
      RetryOnStatusCodes = [502, 503]
    }
  },
  /* as long as it takes */
  { Match { HTTP { PathPrefix = "/stream" } } Destination { Service = "stream" RequestTimeout = "-1s" } },
  { Match { HTTP { PathExact = "/orders/late" } } Destination { Service = "late" NumRetries = 9 } },
]
