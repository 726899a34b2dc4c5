variable "region" {
  type        = string
  description = "AWS region of the node."
}

variable "domain" {
  type        = string
  description = "Base domain of the workers, such as workers.example.com. The control API answers on control.<domain>."
}

variable "zone_id" {
  type        = string
  description = "Route 53 zone that holds the domain."
}

variable "repository" {
  type        = string
  description = "Git URL of your clone of Atoll, which the machine installs from."
}

variable "revision" {
  type        = string
  description = "Branch, tag or commit of that repository."
  default     = "main"
}

variable "subnet_id" {
  type        = string
  description = "A public subnet. The volume is in its availability zone."
}

variable "operators" {
  type        = list(string)
  description = "Address ranges that may use the control API, such as [\"192.0.2.0/24\"]."

  validation {
    condition     = length(var.operators) > 0 && alltrue([for range in var.operators : can(cidrhost(range, 0))])
    error_message = "operators needs at least one address range, such as 192.0.2.0/24."
  }
}

variable "instance_type" {
  type        = string
  description = "x86-64 machine. docs/guides/size.md says how large."
  default     = "c7i.large"
}

variable "disk_gb" {
  type        = number
  description = "Size of the volume with the data folder."
  default     = 50
}

variable "ssh_key_name" {
  type        = string
  description = "Key pair for SSH from the operators' addresses; null closes port 22."
  default     = null
}
