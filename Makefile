# SPDX-License-Identifier: MIT
#
# The front door. It only calls CMake's presets (CMakePresets.json) by shorter names; docs/building.md says more.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CHECKS ?= $(shell expr $(JOBS) \* 4) # tests at once: most wait; those that compute take the places of two

# Old sanitizer runtimes can't live with the address randomisation of new kernels; where it may be switched off, it is.
NOASLR := $(shell setarch -R true 2>/dev/null && echo setarch -R)

# build,PRESET[,arguments] configures and builds; check,PRESET runs its tests.
build = cmake --preset $(1) && cmake --build --preset $(1) -j $(JOBS) $(2)
check = MAKEFLAGS= $(NOASLR) ctest --preset $(1) -j $(CHECKS)

.PHONY: help run test quick soak bench picture install dist deb rpm image bundle clean format
.PHONY: built-asan built-tsan built-dev checked-asan checked-tsan checked-dev

help: ## print this list (the default)
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18
	@echo "  BECALM_NO_INSTALL=1 make ...: never install packages, only say which are missing"

run: ## run the demonstration: a retry storm and the calm, side by side, in the browser and here
	@tools/setup build
	@tools/build-shown release becalm $(JOBS)
	@tools/play build/release/becalm

fleet: ## run three gateways that share a retry budget through a redis-server of their own
	@tools/setup build
	@tools/build-shown release becalm $(JOBS)
	@tools/fleet build/release/becalm

test: ## build with gcc and clang; test plainly, under sanitizers, and by half a minute of fuzzing
	tools/setup build test
	+@$(MAKE) --no-print-directory -j 4 checked-asan checked-tsan checked-dev
	@echo "all tests of asan, dev and tsan have passed"

# One preset is built after the other, and its tests begin when it is built: most tests wait most of the time, so those
# of one preset alone would leave processors idle. No test has a lower priority: beside other work of the machine, the
# run would never end.
named = { $(2); } 2>&1 | sed -u 's/^/$(1)  /'
built-asan built-tsan built-dev: built-%:
	@$(call named,$*,$(call build,$*))
built-dev: built-asan
built-tsan: built-dev
checked-asan checked-tsan: checked-%: built-%
	@$(call named,$*,$(call check,$*))
checked-dev: built-dev
	@$(call named,dev,BECALM_BESIDE_ASAN=1 $(call check,dev) -LE by-asan)

quick: ## build and test with gcc alone
	$(call build,dev)
	$(call check,dev)

soak: ## run the tests with their full counts, plainly and under sanitizers; fuzz for ten minutes
	tools/setup build test bench deb rpm image package
	$(call build,soak) && $(NOASLR) ctest --preset soak -j $(JOBS)
	$(call build,clang) && $(call check,clang)
	$(call build,soak-asan) && $(NOASLR) ctest --preset soak-asan -j $(JOBS) -R '^(e2e|cli|test_)'
	$(call build,soak-tsan) && $(NOASLR) ctest --preset soak-tsan -j $(JOBS) -R '^(e2e|curl|test_)'
	cmake --preset fuzz -DBECALM_FUZZ_SECONDS=600 -DBECALM_FUZZ_SEED=0 && cmake --build --preset fuzz -j $(JOBS) && $(call check,fuzz)

bench: ## measure engine, simulator and gateway beside their peers; run every acceptance row
	tools/setup build bench
	$(call build,release,--target bench_engine bench_curl becalm backend relay load)
	build/release/bench/bench_engine
	build/release/bench/bench_curl
	bench/bench_sim.py
	python3 -B bench/gateway/race.py
	tests/acceptance/acceptance.py --jobs $(JOBS)

picture: ## draw the pictures of README and docs again: by the simulator, by a trace, and by the tests in a browser
	tools/setup build test
	$(call build,dev,--target becalm)
	build/dev/becalm sim metastable --compare all --picture docs/images/metastable.svg
	tools/animate build/dev/becalm >docs/images/storm.svg
	BECALM=build/dev/becalm BECALM_PICTURE=docs/images/trace.svg python3 -B -m pytest -q -p no:cacheprovider tests/e2e/test_traces.py -k two_gateways
	rm -rf build/dev/pictures
	BECALM_PICTURES=$(CURDIR)/build/dev/pictures ctest --preset dev -R '^browser/'
	cp build/dev/pictures/demo.png build/dev/pictures/dashboard.png docs/images/

install: ## install the command, headers and libraries (PREFIX=/usr/local, DESTDIR=)
	tools/setup build
	cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build --preset release -j $(JOBS)
	cmake --install build/release

VERSION := $(shell sed -n 's/.*BECALM_VERSION *"\(.*\)".*/\1/p' include/becalm/version.h)
DIST := $(CURDIR)/build/dist
package = tools/setup build $(1) && $(call build,release) && mkdir -p $(DIST)
sums = cd $(DIST) && sha256sum $$(ls | grep -v SHA256SUMS) >SHA256SUMS && echo "in build/dist:" && cat SHA256SUMS

dist: ## write the sources, a bill of materials and checksums to build/dist
	$(call package)
	git archive --format=tar.gz --prefix=becalm-$(VERSION)/ -o $(DIST)/becalm-$(VERSION).tar.gz HEAD
	tools/sbom build/release/becalm >$(DIST)/becalm-$(VERSION).cdx.json
	$(sums)

deb: ## write packages for Debian and Ubuntu to build/dist
	$(call package,deb)
	cd build/release && cpack -G DEB -B package-deb && cp package-deb/*.deb $(DIST)
	$(sums)

rpm: ## write packages for Fedora and its kin to build/dist
	$(call package,rpm)
	cd build/release && cpack -G RPM -B package-rpm && cp package-rpm/*.rpm $(DIST)
	$(sums)

image: ## build the image becalm:VERSION with buildah, and write it to build/dist
	$(call package,image)
	rm -rf build/image && tools/image-root build/release/becalm build/image/root
	buildah build -q -t becalm:$(VERSION) -f Containerfile build/image
	rm -f $(DIST)/becalm-$(VERSION).oci.tar && buildah push -q becalm:$(VERSION) oci-archive:$(DIST)/becalm-$(VERSION).oci.tar:becalm:$(VERSION)
	$(sums)

bundle: ## write a folder that runs on any Linux of this processor, as a tarball to build/dist
	$(call package)
	rm -rf build/bundle && tools/bundle build/release/becalm build/bundle/becalm-$(VERSION)
	tar -C build/bundle -czf $(DIST)/becalm-$(VERSION)-linux-$(shell uname -m).tar.gz becalm-$(VERSION)
	$(sums)

clean: ## remove everything built
	rm -rf build

format: ## lay out all C files by .clang-format
	tools/setup format
	git ls-files -co --exclude-standard '*.c' '*.h' '*.cc' | xargs clang-format -i
