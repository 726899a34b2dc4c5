provider "aws" {
  region = var.region
}

data "aws_subnet" "node" {
  id = var.subnet_id
}

data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"] # Debian

  filter {
    name   = "name"
    values = ["debian-12-amd64-*"]
  }
}

resource "aws_security_group" "node" {
  name_prefix = "atoll-"
  description = "Atoll: HTTP and HTTPS for everyone, SSH for operators"
  vpc_id      = data.aws_subnet.node.vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "web" {
  for_each          = toset(["80", "443"])
  security_group_id = aws_security_group.node.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.key)
  to_port           = tonumber(each.key)
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each          = var.ssh_key_name == null ? toset([]) : toset(var.operators)
  security_group_id = aws_security_group.node.id
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.node.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# The data folder outlives the machine: terraform replaces the machine and attaches the volume again.
resource "aws_ebs_volume" "data" {
  availability_zone = data.aws_subnet.node.availability_zone
  size              = var.disk_gb
  type              = "gp3"
  encrypted         = true
  tags              = { Name = "atoll-data" }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_instance" "node" {
  ami                         = data.aws_ami.debian.id
  instance_type               = var.instance_type
  subnet_id                   = var.subnet_id
  vpc_security_group_ids      = [aws_security_group.node.id]
  key_name                    = var.ssh_key_name
  user_data_replace_on_change = true
  tags                        = { Name = "atoll" }

  user_data = templatefile("${path.module}/cloud-init.yaml", {
    domain     = var.domain
    operators  = join(" ", var.operators)
    repository = var.repository
    revision   = var.revision
    volume     = replace(aws_ebs_volume.data.id, "-", "")
  })

  # Workers cannot reach 169.254.169.254: the node refuses it. This keeps other programs from the machine's credentials too.
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_size = 20
    encrypted   = true
  }

  lifecycle {
    ignore_changes = [ami] # a newer image of Debian does not replace the machine
  }
}

resource "aws_volume_attachment" "data" {
  device_name = "/dev/sdf"
  volume_id   = aws_ebs_volume.data.id
  instance_id = aws_instance.node.id

  # The machine ends first, so that the node closes its files.
  stop_instance_before_detaching = true
}

resource "aws_eip" "node" {
  instance = aws_instance.node.id
  domain   = "vpc"
}

resource "aws_route53_record" "node" {
  for_each = toset([var.domain, "*.${var.domain}"])
  zone_id  = var.zone_id
  name     = each.key
  type     = "A"
  ttl      = 300
  records  = [aws_eip.node.public_ip]
}
