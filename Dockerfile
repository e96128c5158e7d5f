# The daemon in an image: built as its Debian package is, then laid into a Debian that holds the
# libraries it needs and nothing else. Runs as a user without rights; all keys may come from the
# environment (FRAZIL_SECTION_KEY). Healthy means ready to serve.
FROM debian:bookworm AS build
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /src
COPY debian/control debian/changelog debian/
RUN apt-get update && apt-get build-dep -y --no-install-recommends ./
COPY . .
RUN make -f debian/rules -j"$(nproc)" binary DEST=/out
# The packages that hold the libraries, as dpkg-shlibdeps found them: names without versions.
RUN sed -n 's/^shlibs:Depends=//p' build/deb/substvars | sed 's/([^)]*)//g; s/,/ /g' >/out/libraries

FROM debian:bookworm
COPY --from=build /out/libraries /tmp/libraries
RUN apt-get update && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(cat /tmp/libraries) && \
	rm -rf /var/lib/apt/lists/* /tmp/libraries && \
	groupadd --system --gid 818 frazil && \
	useradd --system --uid 818 --gid frazil --home-dir /var/lib/frazil --shell /usr/sbin/nologin frazil && \
	install -d -o frazil -g frazil /run/frazil /var/lib/frazil && \
	install -d -o frazil -g frazil -m 2770 /var/lib/frazil/warehouse
COPY --from=build /src/build/deb/root/usr/bin/ /usr/bin/
COPY --from=build /src/build/deb/root/etc/frazil/ /etc/frazil/
USER 818:818
VOLUME /var/lib/frazil
EXPOSE 8181 8182 8183
STOPSIGNAL SIGTERM
# Bash alone: an HTTP client is no library.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/bin/bash", "-c", \
	"exec 3<>/dev/tcp/127.0.0.1/8183 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["/usr/bin/frazild", "--config", "/etc/frazil/frazild.ini"]
