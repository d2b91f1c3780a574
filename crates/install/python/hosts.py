# Prints where the files are that an index lists for a package: usually on another host.
import base64, json, re, sys, urllib.error, urllib.parse, urllib.request

page = urllib.parse.urlsplit(sys.argv[1])
request = urllib.request.Request(page._replace(netloc=page.netloc.rpartition("@")[2]).geturl())
request.add_header("Accept", "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
if page.username:
    words = urllib.parse.unquote(page.username) + ":" + urllib.parse.unquote(page.password or "")
    request.add_header("Authorization", "Basic " + base64.b64encode(words.encode()).decode())
try:
    answer = urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as error:
    sys.exit("the index has no package of this name" if error.code == 404 else f"the index answers: {error}")
except OSError as error:
    sys.exit(f"the index cannot be reached: {error}")
with answer:
    url, text = answer.url, answer.read(1 << 26).decode()
    if "json" in answer.headers.get("Content-Type", ""):
        links = [file["url"] for file in json.loads(text)["files"]]
    else:
        links = re.findall(r'href="([^"]+)"', text)
links = (urllib.parse.urlsplit(urllib.parse.urljoin(url, link)) for link in links)
print("\n".join(sorted({f"{link.scheme}://{link.netloc}/" for link in links})))
