"""Addresses, hosts and URLs: private ones in many spellings, and public ones beside them."""


def words(text: str) -> list[str]:
    return text.split()


# Addresses that are reserved, this machine's or its network's, and addresses of the internet beside them.
PRIVATE = words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254 127.0.0.1 127.0.0.53 127.1.2.3
127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.1
192.0.0.9 192.0.0.10 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.254 198.18.0.1 198.19.255.254
198.51.100.1 203.0.113.1 224.0.0.1 224.0.0.251 239.255.255.250 240.0.0.1 250.1.2.3 255.255.255.255 :: ::1 ::2
::7f00:1 ::127.0.0.1 ::a00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0
::ffff:192.168.1.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
64:ff9b:1::1 64:ff9b:1::127.0.0.1 100::1 2001::1 2001:0:7f00:1:: 2001:1::1 2001:2::1 2001:10::1 2001:20::1
2001:db8::1 2001:db8:ffff::1 2002:7f00:1:: 2002:7f00:1::1 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe:: 3fff::1
5f00::1 fc00::1 fd00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::a9fe:a9fe fec0::1 feff::1 ff00::1 ff02::1 ff02::fb
ff05::1:3 ffff::1 4000::1 8000::1
""")
OPEN = words("""
1.1.1.1 8.8.8.8 9.9.9.9 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 172.15.255.255 172.32.0.1
192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2606:4700:4700::1111 2a00:1450::1
2001:4860:4860::8888 2003::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
""")

# Ways to write 127.0.0.1, 169.254.169.254 and others that some readers understand, and hosts that are none.
HOSTS = words("""
0 1 127.1 127.0.1 2130706433 0x7f000001 0x7F000001 0X7f000001 017700000001 0177.0.0.1 0177.0.0.01 0x7f.1 0x7f.0.0.1
0x7f.0x0.0x0.0x1 127.0.0.0x1 127.0x0.1 127.0.0.1. 127.1. 0x7f.1. 127.000.000.001 0127.0.0.1 00000177.0.0.1
127.0.0.01 2852039166 0xa9fea9fe 025177524776 0251.0376.0251.0376 169.254.43518 169.16689662 0xA9.254.0251.254
0xa9.0xfe.0xa9.0xfe 4294967295 4294967297 127.0.0.1.1 256.256.256.256 1.2.3 1..2 .127.0.0.1 127.0.0.1.. 0x 0x. 0xg.1
[127.0.0.1] [::1%25lo] [::1%lo] [fe80::1%25eth0] [::1] [::] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1]
[::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [64:ff9b::7f00:1] [::127.0.0.1] [::ffff:0x7f.1] [::1].example.com [v1.x]
[] \u2460\u2461\u2466.\u24ea.\u24ea.\u2460 \uff11\uff12\uff17.\uff10.\uff10.\uff11 127\u30020\u30020\u30021
127\uff0e0\uff0e0\uff0e1 127\uff610\uff610\uff611
\u246f\u2468\u3002\u2461\u2464\u2463\u3002\u246f\u2468\uff61\u2461\u2464\u2463
\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3 localho\u017ft loc\xadalhost loc\u200balhost ex\u0430mple.com
127.0.0.\u0661 \u2488\u2489 127%2e0%2e0%2e1 %31%32%37.0.0.1 %6c%6f%63alhost localhost%00 127.0.0.1%2f 127.0.0.1%23
-localhost localhost- a..b *.example.com exa$mple.com exa,mple.com exa~mple.com {host}
""")

# Whole URLs.
TRICKS = [
    "",
    "example.com",
    "//example.com/cat.png",
    "http:",
    "http:/",
    "http://",
    "http:///",
    "http:///example.com",
    "http:example.com",
    "http:/example.com",
    "http://?",
    "http://#",
    "http://:80/",
    "http://@/",
    "http:\\\\127.0.0.1\\",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://user:secret@example.com/",
    "http://user@example.com/",
    "http://:@example.com/",
    "http://@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://%00@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
    "http://127.0.0.1 @example.com/",
    "http://exa mple.com/",
    " http://127.0.0.1/",
    "http://127.0.0.1/ ",
    "http://127.0.0.1\t/",
    "http://127.0.0.1\r\n/",
    "http://example.com/\r\nX-Injected: 1",
    "http://example.com/\x00",
    "http://example.com/\x7f",
    "ht\ntp://example.com/",
    "http://127.0.0.1:80:80/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:0/",
    "http://example.com:1/",
    "http://example.com:445/",
    "http://example.com:1023/",
    "http://example.com:65536/",
    "http://example.com:-1/",
    "http://example.com:8o/",
    "http://example.com:٨٠/",
    "https://example.com:22/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost:8080/",
    "http://sub.localhost/",
    "http://internal/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://rebound.example/",
    "http://half.example/",
    "http://mapped.example/",
    "http://nat64.example/",
    "http://odd.example/",
    "https://internal/",
    "HTTP://127.0.0.1/",
    "hTTp://[::1]/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "file://example.com/etc/passwd",
    "gopher://example.com/",
    "dict://example.com/",
    "ldap://example.com/",
    "ws://example.com/",
    "wss://example.com/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "jar:http://example.com/",
    "javascript:alert(1)",
    "data:image/png;base64,AAAA",
    "blob:http://example.com/1",
    "about:blank",
    "http://" + "a" * 300 + ".com/",
    "http://example.com/" + "a" * 9000,
]


def urls() -> list[str]:
    """URLs that are refused, or name hosts that are nowhere."""
    written = [*(f"[{each}]" if ":" in each else each for each in PRIVATE), *HOSTS]
    return [f"http://{host}/cat.png" for host in written] + TRICKS
