output "address" {
  description = "Public address of the node."
  value       = aws_eip.node.public_ip
}

output "control_api" {
  description = "Address of the control API, for `atoll profile add`."
  value       = "https://control.${var.domain}"
}
