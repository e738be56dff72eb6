Kind = "service-resolver"
Name = "admin"
Redirect {
  Service = "backoffice"
}
