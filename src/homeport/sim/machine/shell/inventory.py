"""Programs that images have and that change nothing here: they are there and succeed. Any other is not found."""

from __future__ import annotations

from homeport.sim.machine.image import Image

_BUILTIN = """
alias break continue declare let local popd pushd read readonly return shift shopt trap ulimit umask unset wait
"""
_SYSTEM = """
awk base64 basename blkid blockdev chattr chcon chgrp chpasswd chroot clear cloud-init comm crontab cut date dd df diff
dirname dmesg du e2fsck envsubst ethtool fallocate fdisk file find findmnt free fsfreeze fstrim getconf getent groupadd
groupmod growpart gunzip gzip head hexdump hwclock id ifconfig install ip ip6tables ip6tables-save iptables
iptables-restore iptables-save iscsiadm journalctl kill killall last ldconfig less localectl locale-gen logger loginctl
logrotate losetup ls lsblk lscpu lsmod lsof lspci lvcreate lvextend lvs md5sum mkfs mkfs.ext4 mkfs.xfs mkswap mktemp
mount mountpoint multipath multipathd nc netstat networkctl nft nice nproc openssl parted partprobe passwd perl pgrep
ping pkill ps pvcreate python3 readlink realpath reboot renice resize2fs resolvectl rmdir route rsync runuser seq
setfacl sfdisk sgdisk sha256sum shred shutdown sort ss ssh-keygen stat stdbuf strings stty su sudoedit swapon
systemd-analyze systemd-machine-id-setup systemd-run systemd-sysusers systemd-tmpfiles tail tar timedatectl top tr
truncate tune2fs udevadm umount uname uniq unlink unzip update-ca-trust uptime useradd userdel usermod vgcreate visudo
wc whoami wipefs xargs xfs_growfs xz yes
"""
_DEBIAN = """
add-apt-repository apt-cache apt-key apt-mark cloud-localds debconf-set-selections dpkg dpkg-reconfigure gpg netplan
snap ufw update-alternatives update-grub update-initramfs update-rc.d
"""
_RED_HAT = """
alternatives firewall-cmd getenforce grubby nmcli restorecon rpm semanage setenforce setsebool subscription-manager
update-crypto-policies yum-config-manager
"""
_KUBERNETES = "conntrack containerd containerd-shim-runc-v2 crictl ctr ebtables kubectl kubelet runc socat"

_FAMILIES = {
    "ubuntu": _DEBIAN,
    "debian": _DEBIAN,
    "rocky": _RED_HAT,
    "rhel": _RED_HAT,
    "centos": _RED_HAT,
    "alma": _RED_HAT,
    # An image of an unknown family is assumed to work.
    "linux": _DEBIAN + _RED_HAT,
}


def inventory(image: Image) -> set[str]:
    """What is on an image besides the programs that are simulated. Packages that are installed later are added."""
    names = _BUILTIN + _SYSTEM + _FAMILIES.get(image.family, "")
    found = set((names + _KUBERNETES if image.kubernetes else names).split())
    return (found | set(image.programs)) - set(image.without)
