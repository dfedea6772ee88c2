# syntax=docker/dockerfile:1
# musls on PX4's image with PX4 SITL, Gazebo Harmonic, ROS 2 Jazzy, the XRCE-DDS agent and px4_msgs.
# Build with `docker/musls.sh build`: docker/.env holds the version.
ARG PX4_VERSION
FROM px4io/px4-sitl-gazebo-ros2:${PX4_VERSION}

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# The versions of ROS packages come with the image's own apt sources, hence no pins.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        python3-colcon-common-extensions \
        python3-gz-math7 \
        python3-gz-sim8 \
        python3-gz-transport13 \
        python3-venv \
        ros-jazzy-ros-gz-bridge \
    && rm -rf /var/lib/apt/lists/*

# The image's Python with ROS, and what musls needs on top. ROS's message packages are compiled for NumPy 1, so NumPy is
# the one pin that is not taken over.
WORKDIR /opt/musls/src
COPY pyproject.toml constraints.txt ./
RUN python3 -m venv --system-site-packages /opt/musls/venv \
    && grep -v '^numpy==' constraints.txt > /tmp/constraints.txt \
    && echo 'numpy<2' >> /tmp/constraints.txt \
    && python3 -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *p['optional-dependencies']['px4'], sep='\n')" \
        > /tmp/requirements.txt \
    && /opt/musls/venv/bin/python -m pip install --no-cache-dir \
        --constraint /tmp/constraints.txt --requirement /tmp/requirements.txt \
    && rm /tmp/constraints.txt /tmp/requirements.txt

# Built with the Python of the venv, which the installed programs then run under.
COPY colcon.meta ./
COPY src ./src
# hadolint ignore=SC1091
RUN source /opt/ros/jazzy/setup.bash \
    && source /opt/px4_ros2/install/local_setup.bash \
    && /opt/musls/venv/bin/python -m colcon --log-base /tmp/log build \
        --build-base /tmp/build --install-base /opt/musls/install --merge-install \
    && rm -rf /tmp/build /tmp/log

COPY --chmod=755 docker/entry.sh docker/gazebo.sh docker/healthy.sh docker/px4.sh /opt/musls/bin/

# Compiled for any x86 processor of the last ten years, so that the first flight in a container compiles nothing.
RUN if [ "$(uname -m)" = x86_64 ]; then target=x86-64-v3; else target=native; fi \
    && /opt/musls/bin/entry.sh musls compile --target "$target" --into /opt/musls/compiled

# Any user may run it (compose.yaml says who), hence a home that is everybody's, and an id that another user may have.
RUN { userdel --remove ubuntu 2>/dev/null || true; } \
    && useradd --no-log-init --non-unique --uid 1000 --user-group --create-home musls \
    && install --directory --mode=1777 /home/musls/.cache /home/musls/.cache/numba /runs \
    && chmod 1777 /home/musls

USER 1000:1000
ENV HOME=/home/musls \
    NUMBA_CACHE_DIR=/home/musls/.cache/numba \
    MUSLS_COMPILED=/opt/musls/compiled \
    PYTHONUNBUFFERED=1
# Paths are then those on the host, seen from the root of the repository: runs/...
WORKDIR /
ENTRYPOINT ["/opt/musls/bin/entry.sh"]
CMD ["bash"]
